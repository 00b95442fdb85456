"""The gradients of a struct: under the names of its fields, as they are when they are read.

Covers: ``Struct.grad``, the tensors in a struct. Does not cover: what a gradient is (``tensor``).
See also: docs/reference/tape.md, "Structs and parameters".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tlmem.runtime import core
from tlmem.runtime.tensors.storage import Storage

GRADIENTS = "_struct"


class StructGrads(Mapping[Any, Any]):
    """Field -> gradient of its tensor or None, or the gradients of its struct; read only.

    A field is read as an attribute or item, each time anew. Fields that are neither a tensor nor a
    struct are left out.
    """

    __slots__ = (GRADIENTS,)

    def __init__(self, struct: Any) -> None:
        object.__setattr__(self, GRADIENTS, struct)

    def __getitem__(self, key: Any) -> Any:
        value = self._struct[key]
        if not has_gradients(value):
            raise KeyError(f"field {key!r} of {self._struct._name()} is no tensor and no struct")
        return value.grad

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(str(error.args[0]), name=name, obj=self) from None

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(
            f"set the gradient of the tensor: struct.{name}.grad = ...", name=name, obj=self
        )

    def __iter__(self) -> Iterator[Any]:
        return (key for key in self._struct.fields if has_gradients(self._struct[key]))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        shown = ", ".join(f"{key}={self[key]!r}" for key in self)
        return f"StructGrads({shown})"


def has_gradients(value: Any) -> bool:
    """Whether a field's value has a gradient, or fields that may."""
    is_struct = isinstance(value, core.Reference) and hasattr(type(value), "parameters")
    return is_struct or isinstance(value, Storage)


def parameters_in(struct: Any) -> Iterator[Any]:
    """The tensors in a struct and in the structs inside it, in order; one that is shared, twice."""
    for key in struct.fields:
        value = struct[key]
        if isinstance(value, Storage):
            yield value
        elif has_gradients(value):
            yield from parameters_in(value)
