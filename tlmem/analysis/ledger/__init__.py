"""What happened to objects one by one: history of one, acquires without a release, misuse.

In: the ledger and the events of objects. Out: trees and findings.
May import: errors, events, units, recording, analysis.model, analysis.places, analysis.lifetimes,
analysis.holders.
Third-party: numpy, pandas.
"""
