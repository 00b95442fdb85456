"""From events to tables: one row an event, an object, a holder, a scope, a sample.

In: a timeline of events with their pairing. Out: pandas tables as ``schema`` declares them.
May import: errors, events, units, recording.format.
Third-party: numpy, pandas.
"""
