"""Automatic differentiation: tapes that keep memory, and misuse of backward passes."""
