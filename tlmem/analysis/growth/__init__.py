"""Does it grow? Arrays by line, Python's heap, native memory, one step of the program.

In: tables and lifetimes of a recording. Out: growing lines and curves with rate and interval.
May import: units, analysis.model, analysis.rules, analysis.places, analysis.heap_samples,
analysis.own_time, analysis.lifetimes.
Third-party: numpy, pandas, scipy.
"""
