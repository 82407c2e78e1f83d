"""Published tables and data figures, one study each: cells, what is measured, rules, pictures."""
