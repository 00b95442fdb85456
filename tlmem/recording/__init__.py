"""What a recording is: ``reader`` opens a file as a ``Recording``.

In: the bytes of a file, whole, damaged or still being written. Out: pandas tables.
May import: errors, events, units, recording.
Third-party: numpy, pandas.
"""
