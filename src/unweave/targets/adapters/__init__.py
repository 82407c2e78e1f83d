"""Adapters: everything a user may point at, as a callable from (n, D) rows to (n, K) answers."""
