"""Automatic differentiation: tapes that keep memory, and misuse of backward passes.

May import: scenarios.programs, scenarios.programs.healthy, tlmem.
"""
