"""Networks from samples alone: choose what to fit, fit it, and judge it by rows that no fit has seen.

`recovery` is the front door; `kinked`, `smooth` and `quadratic` fit units of one kind each and say what they
found; `held_out` and `verdict` are what they are judged by.
"""
