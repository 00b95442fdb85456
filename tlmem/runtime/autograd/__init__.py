"""Gradients: the tape, what is recorded on it, and how parameters are updated.

In: tensors that need a gradient, and rules of the program. Out: gradients, updated parameters, and
what a tape holds.
May import: runtime.
Third-party: none.
"""
