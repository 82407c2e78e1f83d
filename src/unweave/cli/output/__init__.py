"""What commands print: results for people on stdout, JSON for programs, progress on stderr."""
