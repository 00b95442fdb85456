"""Functions whose memory is decided before they run: ``@tlmem.compile``.

In: a function and the arguments of a call. Out: Python code for arguments of that kind, whose
results are computed into memory that was planned, and what was decided (``explain``).
May import: errors, _exports, runtime, compiler.
Third-party: none. Inside functions: pandas.

The way of a function: ``front`` reads it into the ``ir``; ``passes`` find out what is known of its
values; ``backend`` writes the code. ``specialising`` puts the three together for one kind of
arguments (``signature``), ``compiled`` chooses between the specialisations at each call. ``ir``,
``walking``, ``policies`` and ``errors`` are the ground that the three folders stand on.
"""
