"""Units with a kink: kinks on lines, units behind them, signs, and fits to values."""
