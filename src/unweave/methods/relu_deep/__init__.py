"""Networks with two hidden layers of kinked units, from queries."""
