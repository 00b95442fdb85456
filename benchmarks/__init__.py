"""What tlmem costs: events, whole programs, files, reading; side by side with other tools.

Covers: measuring and writing docs/benchmarks.md. Does not cover: passing or failing; a number that
misses its target is shown as such, with the reason, and never breaks a build.

``python -m benchmarks --help`` tells the parts. ``programs/`` holds what is measured.
"""
