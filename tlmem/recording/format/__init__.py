"""From the bytes of a file to events in time order, each free paired with its allocation.

In: a file (docs/format.md). Out: arrays of events, names of code, chains of Python objects.
May import: errors, events, units.
Third-party: numpy.
"""
