"""Rows, fits and error bars for answers that are rounded or noisy."""
