"""Targets without a hidden layer."""
