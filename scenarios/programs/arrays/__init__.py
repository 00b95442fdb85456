"""Leaks of NumPy arrays: containers, closures, views and cycles that keep them.

May import: scenarios.programs.
Third-party: numpy, pandas.
"""
