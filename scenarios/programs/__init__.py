"""Small programs, each with its truth beside it; one folder for each kind of fault.

Enters: nothing, or the word ``fixed`` (see ``harness.switch``). Leaves: memory that is kept, or
not. May import: the public names of ``tlmem``, NumPy, pandas, ``harness.switch``, another program.
``arrays``, ``process``, ``ownership``, ``tape`` and ``misuse`` hold faults with their repairs,
``healthy`` programs without a fault; ``seeded`` belongs to ``harness.soak``, ``attribution`` to
``harness.attribution``. How a truth is written stands in ``harness.catalog``.
"""
