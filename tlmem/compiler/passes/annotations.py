"""What the program wrote behind the colon of an argument, as an abstract value.

``x: "float32[4, 8]"`` says shape and dtype, so that a function can be planned before its first
call. With ``from __future__ import annotations`` the quotes are not needed; case does not matter.
``Annotated[tlmem.Tensor, "float32[4, 8]"]`` keeps type checkers content.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, get_args, get_origin

from tlmem.compiler import ir
from tlmem.compiler.passes.abstract import UNKNOWN, PlainType, TensorType
from tlmem.compiler.passes.dataflow import Env
from tlmem.runtime.core import CPU
from tlmem.runtime.dtypes import NAMES

PLAIN = (bool, int, float, str)
FORM = re.compile(rf"(?:\w+\.)*({'|'.join(NAMES)})\s*\[([\d\s,]*)\]", re.IGNORECASE)


def annotated(annotation: Any) -> Any:
    """The abstract value that an annotation says; ``UNKNOWN`` when it says none.

    A tensor that is described by shape and dtype is on the CPU and needs no gradient; a call with
    another one plans anew.
    """
    if get_origin(annotation) is Annotated:
        described = (annotated(each) for each in get_args(annotation)[1:])
        return next((each for each in described if each is not UNKNOWN), UNKNOWN)
    if annotation in PLAIN:
        return PlainType(annotation)
    found = FORM.fullmatch(annotation.strip()) if isinstance(annotation, str) else None
    if found is None:
        return UNKNOWN
    lengths = tuple(int(each) for each in re.findall(r"\d+", found[2]))
    return TensorType(lengths, found[1].lower(), CPU, False, True)


def arguments_of(function: ir.Function) -> Env:
    """The abstract values of arguments that are annotated, by name."""
    found = {each.name: annotated(each.annotation) for each in function.parameters}
    return {name: value for name, value in found.items() if value is not UNKNOWN}
