"""Faults around automatic differentiation: tapes that keep memory, and misuse of backward passes."""
