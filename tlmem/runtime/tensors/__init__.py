"""What a tensor is and what can be computed with it.

In: arrays, numbers, and tensors as operands. Out: tensors; ops that need a gradient are on the tape
in force, which ``core_ops`` asks the C core for.
May import: runtime.
Third-party: numpy.
"""
