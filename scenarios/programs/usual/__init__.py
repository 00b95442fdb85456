"""NumPy programs as users write them: how near a replay comes to what they had resident.

The replay was changed while these were looked at; those in ``blind`` came later. See
``scenarios.harness.host_replay`` and docs/decisions/host-replay.md.
May import: nothing.
Third-party: numpy, pandas.
"""
