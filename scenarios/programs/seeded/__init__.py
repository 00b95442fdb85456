"""Programs with a leak of a chosen size under noise that a seed decides: ``NAME SIZE SEED``.

They are no scenarios of the catalogue: ``harness.soak`` runs each of them a hundred times.
"""
