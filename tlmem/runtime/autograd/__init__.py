"""Gradients: the tape, what is recorded on it, and how parameters move."""
