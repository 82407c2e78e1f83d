"""One file per command: its options and help. What it does is loaded only when it is run."""
