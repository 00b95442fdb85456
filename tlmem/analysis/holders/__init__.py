"""Who holds the objects that survive: runtime holders, and chains of Python objects.

In: growing lines, the ledger, snapshots. Out: survivors of each line with their holders.
May import: events, units, analysis.model, analysis.rules, analysis.places, analysis.lifetimes,
analysis.growth.
Third-party: numpy, pandas.
"""
