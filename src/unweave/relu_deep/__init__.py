"""Networks with several hidden layers of kinked units, from queries."""
