"""Networks for tables of data that no network answers exactly: ridges, likelihood, cross-validation."""
