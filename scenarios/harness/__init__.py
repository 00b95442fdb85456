"""What records the programs of ``tlmem.scenarios.programs`` and compares findings with the truth.

In: programs and the truths that stand in them. Out: right or wrong for each, the pages
``docs/detection.md``, ``docs/attribution.md``, the tables of ``docs/policies.md`` and
``docs/decisions/host-replay.md``.
Programs are read as text, except that ``policies`` imports one. Start with ``catalog``; ``soak`` is
the same over many runs.
May import: analysis, analysis.leaks, analysis.ledger, events, recording, recording.tables,
replaying, scenarios.programs, scenarios.programs.healthy, tlmem, units.
Third-party: numpy.
"""
