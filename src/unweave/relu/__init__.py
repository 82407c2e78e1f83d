"""Networks with one hidden layer of units that have a kink: from queries along lines, and from samples."""
