"""The gate: budgets in, a decision and an exit code out. ``run.check`` is ``tlmem check``.

Reading order: ``amounts`` (5 MB, 100 kB/s), ``catalogue`` (every budget), ``budgets`` and
``config`` (what a user asked for), ``subject`` (what was recorded), ``trust`` (can it be judged),
``growth`` and ``measure`` (values with intervals), ``suppressions``, ``baseline``, ``judge`` (the
decision), ``outputs`` (how it looks), ``run``; ``repeat`` for repeated runs.
"""
