"""Programs without a fault, which must not be blamed for what they do.

May import: analysis, scenarios.programs, tlmem.
Third-party: numpy, pandas.
"""
