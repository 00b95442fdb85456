"""Programs whose arrays make most of their resident memory, each in another way.

See also: ``scenarios.harness.host_replay``, docs/decisions/host-replay.md.
"""
