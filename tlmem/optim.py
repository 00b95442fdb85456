"""Optimisers that update parameters in place: ``SGD`` and ``Adam``.

See also: docs/reference/tape.md, "Optimisers".
"""

from tlmem.runtime.autograd.optimizers import SGD, Adam, Optimizer

__all__ = ["SGD", "Adam", "Optimizer"]
