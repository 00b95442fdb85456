"""Offsets for buffers whose lives are known, and the lowest peak a recorded program could reach.

In: lives of buffers, or a recording. Out: a ``Plan``; who stands at the peak; what simpler
placements would need.
Only ``planner`` calls the extension module; everything else works without it.
May import: errors, events, analysis, _native.
Third-party: numpy.
"""
