"""What memory consisted of at one moment, and what would have made its peak lower.

In: a recording. Out: an ``explained.Explained``: the moment, and the bytes alive by role, module
and line, which add up to all that is alive; replays of the recording with one thing changed.
May import: errors, events, units, recording.format, recording.tables, analysis.holders,
analysis.lifetimes, analysis.model, analysis.places.
Third-party: numpy, pandas.

Reading order: ``phases`` (what a stack was doing), ``blocks`` (objects on the clock of events),
``passes`` (forward, backward, step), ``roles`` (weights, activations and others), ``names`` (what
snapshots of holders know better), ``modules`` (paths of PyTorch's modules), ``lowering`` (replays),
``held`` (who held what was alive), ``explained``.
"""
