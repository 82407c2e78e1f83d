"""Logistic models of each class against the rest, normalised to probabilities."""
