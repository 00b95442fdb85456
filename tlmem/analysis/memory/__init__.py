"""Where resident memory is, as parts that add up.

In: samples of resident memory, mappings, device tables. Out: the attribution.
May import: units, analysis.model, analysis.rules, analysis.growth.
Third-party: numpy, pandas.
"""
