"""Layers of kinked units, one after the other, from kinks on lines and the surfaces behind them."""
