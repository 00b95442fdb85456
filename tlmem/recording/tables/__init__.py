"""From events to tables: one row an event, an object, a holder, a scope, a sample.

In: a timeline of events with their pairing. Out: pandas tables as ``schema`` declares them.
``blame`` decides which frame of a stack is blamed, ``ledger`` who held which object.
May import: events, units, recording.format.
Third-party: numpy, pandas.
"""
