"""Tensors whose memory has an owner: scopes, frames, structs and pools over the C core.

In: calls of the program, through the names that ``tlmem`` exports. Out: tensors, and calls of the C
core (``native/include/tlmem.h``), which records what happens when a recorder runs.
May import: _native, runtime.tensors.
Third-party: numpy.

The folders stand in one order: the files here are the ground; ``tensors``, ``ownership`` and
``autograd`` each stand on those before them. Where an earlier one needs a later one at run time (an
op whose record was refused, the tape of the process), the later one registers a function with it.

See also: docs/reference/tensor.md, docs/reference/runtime.md.
"""

from tlmem.runtime.tensors.tensor import Tensor

__all__ = ["Tensor"]
