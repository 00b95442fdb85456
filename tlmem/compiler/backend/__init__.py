"""From the IR and what the passes found to Python code, and what that code calls while it runs.

In: a function with its ownership operations and the decisions of the passes. Out: statements of
Python, functions made of them, the frames and activations that they use.
May import: compiler, runtime. Inside functions: tlmem.
Third-party: numpy.
"""
