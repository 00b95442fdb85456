"""Programs of different kinds, each with its own way of taking memory; see ``harness.attribution``.

They are not scenarios: nothing in them is right or wrong. Each runs for one to three seconds and
grows to its end, so that a report has to say where the growth went.
May import: tlmem.
Third-party: numpy, pandas.
"""
