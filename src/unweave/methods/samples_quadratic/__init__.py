"""Quadratic units from samples."""
