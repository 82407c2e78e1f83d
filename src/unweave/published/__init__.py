"""The sources' algorithms as printed."""
