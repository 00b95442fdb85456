"""NumPy programs of shapes that nobody had replayed: how near a replay comes to what they held.

Each was first recorded when the player was finished. See ``scenarios.harness.host_replay`` and
docs/decisions/host-replay.md.
May import: nothing.
Third-party: numpy.
"""
