"""Misuse of memory: freed twice, used after free, handled by a stranger, written where it may not be."""
