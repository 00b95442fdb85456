"""NumPy programs as users write them: how near a replay comes to what they had resident.

None of them was looked at while the replay was made, but for ``sliding_window``, ``threaded`` and
``pandas_join``, which it misses. See ``scenarios.harness.host_replay`` and
docs/decisions/host-replay.md.
May import: nothing.
Third-party: numpy, pandas.
"""
