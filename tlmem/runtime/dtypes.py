"""The five dtypes, by name, and which of them a result has.

Covers: names, sizes, promotion. Does not cover: the arithmetic, which is NumPy's.
See also: docs/reference/tensor.md, "Dtypes".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tlmem.runtime.errors import WrongDtype

NAMES = ("bool", "int32", "int64", "float32", "float64")
"""Dtypes, lowest first: an operation on two of them gives the higher one."""
FLOATING = ("float32", "float64")
"""Those that can have a gradient."""
WHOLE = ("bool", "int32", "int64")
"""Those without fractions."""

INTEGER = "integer"
"""What a Python integer is among operands: int64, but no wider than an int32 tensor beside it."""
RANK = {name: rank for rank, name in enumerate(("bool", INTEGER, *NAMES[1:]))}
NUMPY = {name: np.dtype(name) for name in NAMES}
ITEM_BYTES = {name: NUMPY[name].itemsize for name in NAMES}
DEFAULT = "float32"

_KIND: dict[type, str] = {bool: "bool", int: INTEGER, float: "float32"}
_OF = {name: name for name in NAMES}
_OF_OTHER: dict[Any, str] = {
    bool: "bool",
    int: "int64",
    float: "float64",
    "float": "float32",
    "double": "float64",
    "int": "int64",
    "long": "int64",
    **{dtype: name for name, dtype in NUMPY.items()},
    **{dtype.type: name for name, dtype in NUMPY.items()},
}


def dtype_name(dtype: Any) -> str:
    """The name of a dtype that is given by name, NumPy dtype or Python type.

    Raises:
        WrongDtype: it is none of the five.
    """
    try:
        return _OF[dtype]
    except (KeyError, TypeError):
        return _other_name(dtype)


def _other_name(dtype: Any) -> str:
    try:
        if dtype in _OF_OTHER:
            return _OF_OTHER[dtype]
        found = None if dtype is None else np.dtype(dtype)
    except TypeError:
        found = None
    if found is not None and found in _OF_OTHER:
        return _OF_OTHER[found]
    shown = getattr(found, "name", None) or repr(dtype)
    if found is not None and shown in NUMPY:
        shown += f" in the byte order {found.str[0]!r}"
    raise WrongDtype(
        f"dtype {shown} is not supported; use one of {', '.join(NAMES)} (convert with .astype)"
    )


def kind_of_number(value: bool | int | float) -> str:
    """What a Python number is for ``promoted``: it never widens a tensor of its kind."""
    return _KIND.get(type(value)) or (INTEGER if isinstance(value, int) else "float32")


def promoted(*dtypes: str) -> str:
    """The dtype of an operation on tensors of these dtypes, and on numbers: the highest one."""
    found = max(dtypes, key=RANK.__getitem__)
    return "int64" if found == INTEGER else found


def summed(dtype: str) -> str:
    """The dtype in which elements are added up: int64 for integers and bools."""
    return "int64" if dtype in WHOLE else dtype


def floating(dtype: str) -> str:
    """The dtype of a result that has fractions."""
    return dtype if dtype in FLOATING else DEFAULT
