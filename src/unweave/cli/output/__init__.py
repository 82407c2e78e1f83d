"""What commands print: results for people on stdout, JSON for programs, progress on stderr."""

__all__ = ["console", "diagnosis", "document", "figures", "progress", "recovery"]
