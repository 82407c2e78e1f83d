"""One hidden layer of kinked units from precise answers along lines."""
