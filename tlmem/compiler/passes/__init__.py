"""What is known of a function before it runs, each kind of knowledge one pass over the IR.

In: a numbered ``ir.Function`` and abstract values of its arguments. Out: shapes, liveness, origins
of memory, slots and offsets, and the function with its ownership operations.
May import: compiler, planning, runtime.
Third-party: numpy.
"""
