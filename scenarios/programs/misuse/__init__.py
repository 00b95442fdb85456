"""Misuse: freed twice, used after free, released by a stranger, written past the end."""
