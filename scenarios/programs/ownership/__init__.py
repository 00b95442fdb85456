"""Leaks of runtime objects: counts, scopes, frames, fields and pools that keep them."""
