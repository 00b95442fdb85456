"""Memory of tests: what ``pytest --tlmem`` measures and compares with limits.

In: a test that runs, its markers and settings. Out: a failed test where it takes more than it may.
May import: units, recording, analysis, gate. Inside functions: recorder.
Third-party: pytest, numpy.

Reading order: ``measuring`` (what a test took), ``limits`` (what it may take, and the message when
it took more), ``session`` (pytest's hooks).
"""
