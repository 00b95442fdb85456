"""Leaks of NumPy arrays: containers, closures, views and cycles that keep them."""
