"""Any number of recordings as one: about 1 kB is kept of each, and said together.

In: files, folders, patterns. Out: a ``FleetAnalysis``: verdicts counted, groups, outliers.
``members`` finds the files, ``digest`` is what is kept of one, ``engine`` makes the digests in this
process, in others or on other machines, ``comparing`` finds groups and outliers, ``fleet`` is the
public name.
May import: errors, units, recording, analysis.
Third-party: numpy, pandas. Inside functions: distributed.
"""
