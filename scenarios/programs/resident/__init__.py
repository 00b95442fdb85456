"""Programs whose arrays make most of their resident memory, each in another way.

They are not scenarios: nothing in them is right or wrong. See ``scenarios.harness.host_replay`` and
docs/decisions/host-replay.md.
May import: nothing.
Third-party: numpy.
"""
