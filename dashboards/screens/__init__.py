"""One screen a file; ``page`` is what they have in common."""
