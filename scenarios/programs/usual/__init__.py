"""NumPy programs as users write them: how near a replay comes to what they had resident.

The replay was changed while fourteen of them were looked at. The other six, ``audio_queue``,
``csv_table``, ``kalman``, ``particles``, ``raster`` and ``sparse_graph``, were first recorded when
that was done. See ``scenarios.harness.host_replay`` and docs/decisions/host-replay.md.
May import: nothing.
Third-party: numpy, pandas.
"""
