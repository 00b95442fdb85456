"""Scenarios and seeded leaks over many runs: how often is something said that is not so, or missed?

``python -m tlmem.scenarios.harness.soak`` runs it; ``command`` is its command line, ``plan`` says
which programs run how often, ``judging`` what is right, ``workers`` make the runs, ``state`` keeps
what was found and can be taken up again, ``digest`` says of which code a row is, ``tables`` writes
the page.
"""
