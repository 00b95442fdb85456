"""Memory that no array explains: native blocks, Python's heap, drivers, idle pools."""
