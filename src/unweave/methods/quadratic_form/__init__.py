"""Quadratic polynomials, also behind a link."""
