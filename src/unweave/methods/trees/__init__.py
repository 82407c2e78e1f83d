"""Targets that answer in steps: decision trees, forests, boosting."""
