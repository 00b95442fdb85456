"""What kind of leak a growing line is; one class of leaks a file.

In: growing lines with their survivors. Out: findings.
May import: events, units, recording.format, recording.tables, analysis.model, analysis.rules,
analysis.places, analysis.heap_samples, analysis.lifetimes, analysis.growth, analysis.holders,
analysis.peak.
Third-party: numpy, pandas.
"""
