"""What records the programs of ``tlmem.scenarios.programs`` and compares findings with the truth.

Enters: programs and the truths that stand in them. Leaves: right or wrong for each, the pages
``docs/detection.md``, ``docs/attribution.md`` and the table of ``docs/policies.md``.
May import: the public names of ``tlmem`` and its reading side; programs only to read their text,
except ``policies``, which runs one. Start with ``catalog``; ``soak`` is the same over many runs.
"""
