"""Tensors whose memory has an owner: scopes, frames, structs and pools over the C core.

Covers: the Python face of ``native/include/tlmem.h``. ``tlmem`` exports the names.
Does not cover: recording what happens (``tlmem.recorder``), reading it (``tlmem.recording``).

See also: docs/reference/tensor.md, docs/reference/runtime.md.
"""

from tlmem.runtime.tensors.tensor import Tensor

__all__ = ["Tensor"]
