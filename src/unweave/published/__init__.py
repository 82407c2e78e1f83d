"""The sources' algorithms as printed."""

__all__ = ["deep", "relu", "shallow"]
