"""Small programs, each with its truth beside it; one folder for each kind of fault.

In: nothing, or the word ``fixed`` (see ``switch``). Out: memory that is kept, or not.
``arrays``, ``process``, ``ownership``, ``tape`` and ``misuse`` hold faults with their repairs,
``healthy`` programs without a fault; ``seeded`` belongs to ``harness.soak``, ``attribution`` to
``harness.attribution``. How a truth is written stands in ``harness.catalog``.
May import: nothing.
"""
