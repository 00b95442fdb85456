"""Memory of tests: what ``pytest --tlmem`` measures, compares with limits, and says.

Reading order: ``limits`` (what a test may take), ``measuring`` (what it took), ``failure`` (what is
said when it took more), ``session`` (pytest's hooks).
"""
