"""One folder per method of recovery, and the table that lists them."""
