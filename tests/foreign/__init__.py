"""Test suites of other projects, run plain and recorded, compared outcome by outcome.

``suites`` lists what is run, ``running`` runs a part of a suite, ``comparing`` tells a difference
that the recorder makes from a test that fails now and then, ``pages`` writes docs/foreign.md.
``make foreign`` runs everything; ``test_share.py`` a small share in every test run.
"""
