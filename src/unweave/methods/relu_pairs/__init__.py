"""Two hidden layers of kinked units in coarse answers, behind a link, or inside a box."""
