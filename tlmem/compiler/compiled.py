"""A compiled function: its IR, its specialisations, and the choice between them at each call.

Covers: ``compile``. Does not cover: how a specialisation is made (``specialising``).
See also: docs/reference/compiler.md.
"""

from __future__ import annotations

import ast
import functools
import inspect
import threading
from collections.abc import Callable
from functools import partial
from types import CellType, FunctionType
from typing import Any, TypeVar, overload

from tlmem.compiler import front, ir
from tlmem.compiler.backend import code, nodes
from tlmem.compiler.front.names import value_of
from tlmem.compiler.passes.abstract import TensorType
from tlmem.compiler.passes.gradients import with_latches
from tlmem.compiler.passes.normalise import argument, normalised
from tlmem.compiler.policies import POLICIES
from tlmem.compiler.signature import Signature, arguments_of, signature_of
from tlmem.compiler.specialising import Specialisation, specialised, specialised_owned
from tlmem.runtime import core
from tlmem.runtime.tensors import making

MOST_SPECIALISATIONS = 16
ENTRY = "%entry"
Function = TypeVar("Function", bound=Callable[..., Any])


@overload
def compile(function: Function, /) -> Function: ...
@overload
def compile(
    *, policy: str = "default", clear_grads: bool = True
) -> Callable[[Function], Function]: ...


def compile(function: Any = None, /, *, policy: str = "default", clear_grads: bool = True) -> Any:
    """Compiles a function: who owns what, and which memory serves what, is decided before it runs.

    It computes what it computed before, to the bit, and raises what it raised. The first call with
    arguments of a kind (shapes, dtypes, devices, need of gradients) plans; later calls of that kind
    use the plan. The function also takes ``out=``: a tensor that the result is written to.

    Args:
        policy: how objects are owned meanwhile; one of
            ``default``, ``v1``, ``v2``, ``v3``, ``v3-overretain`` and ``v5``; see docs/policies.md.
        clear_grads: whether gradients are cleared at the end of each iteration of a ``for`` loop in
            a function that calls ``backward``.

    Returns:
        A function of the same signature and ``out=``; ``compiled`` is its ``Compiled``.

    Raises:
        NotCompilable: it has a construct that cannot be compiled.
        TypeError: it is not a function. ValueError: there is no such policy.
    Source: docs/seed-map.md, S10, S11, S19, S20, S21, S24.
    """
    if policy not in POLICIES:
        raise ValueError(f"there is no policy {policy!r}; use one of {', '.join(POLICIES)}")

    def decorate(function: Any) -> Any:
        return Compiled(function, policy, clear_grads).dispatcher()

    return decorate if function is None else decorate(function)


class Compiled:
    """What belongs to one compiled function.

    Attributes:
        function: as the program wrote it.
        ir: what it does, statement by statement.
        policy: how its objects are owned.
        specialisations: one for each kind of arguments so far, the latest last.
    """

    is_of_tlmem = True

    def __init__(self, function: FunctionType, policy: str, clear_grads: bool) -> None:
        found = normalised(front.read(function), partial(value_of, function))
        self.ir: ir.Function = with_latches(found) if clear_grads else found
        self.function, self.policy = function, policy
        self.clear_grads = clear_grads
        self.specialisations: list[Specialisation] = []
        self._general: frozenset[str] = frozenset()
        self._lock = threading.RLock()
        self._entry = CellType(self._choose)
        self._names = [each.name for each in self.ir.parameters]

    def __repr__(self) -> str:
        count = len(self.specialisations)
        return f"<Compiled {self.ir.qualname}, policy {self.policy!r}, specialised {count}x>"

    def clear(self) -> None:
        """Forgets the specialisations and frees their memory; the next call plans anew."""
        with self._lock:
            self.specialisations = []
            self._general = frozenset()
            self._entry.cell_contents = self._choose

    def annotated(self) -> dict[str, Any]:
        """A tensor, contents undefined, for each argument whose annotation says shape and dtype,
        such as ``x: "float32[4, 8]"``.

        Raises:
            DeviceOutOfMemory: there is no memory for one.
        """
        found = arguments_of(self.ir)
        return {
            each: making.temporary(known.shape, known.dtype, core.CPU)
            for each, known in found.items()
            if isinstance(known, TensorType) and known.shape is not None and known.dtype is not None
        }

    def plan(self, /, *given: Any, out: bool = False, **named: Any) -> Specialisation:
        """Plans for a call with these arguments, as the first such call would, without calling.

        What is not given is what its default says, or its annotation: with ``x: "float32[4, 8]"``
        a function can be planned before there is any data. A call with arguments of another kind
        plans anew.

        Args:
            given: arguments by position; of tensors only shape, dtype, device and need of a
                gradient matter.
            out: as it is called with ``out=``.
            named: arguments by name.
        Returns:
            What will run: ``plan.placed``, ``plan.refused``, ``plan.layout``, ``code``.
        Raises:
            TypeError: an argument is none of the function's, or has no value, no default and no
                annotation that says shape and dtype.
        """
        bound = inspect.signature(self.function).bind_partial(*given, **named)
        bound.apply_defaults()
        rest = self.annotated() if set(self._names) - set(bound.arguments) else {}
        values = {**rest, **bound.arguments}
        missing = [each for each in self._names if each not in values]
        if missing:
            raise TypeError(
                f"{self.ir.name} cannot be planned without {', '.join(missing)}; give a value, or "
                'an annotation such as "float32[4, 8]"'
            )
        ordered = tuple(argument(values[each]) for each in self._names)
        with self._lock:
            chosen = (*ordered, True if out else None)
            return self._fitting(chosen) or self._specialise(chosen)

    def dispatcher(self) -> Any:
        """The function that the program calls: it goes straight to the latest specialisation."""
        function = self.function
        kinds = {each.name: each.kind for each in self.ir.parameters}
        given = ast.arguments(
            posonlyargs=[ast.arg(n) for n in self._names if kinds[n] == "positional"],
            args=[ast.arg(n) for n in self._names if kinds[n] == "either"],
            kwonlyargs=[ast.arg(n) for n in [*self._keywords(), "out"]],
            kw_defaults=[None] * (len(self._keywords()) + 1),
            defaults=[],
        )
        passed: list[ast.expr] = [nodes.name(each) for each in [*self._names, "out"]]
        body: list[ast.stmt] = [ast.Return(ast.Call(nodes.name(ENTRY), passed, []))]
        line = Compiled.dispatcher.__code__.co_firstlineno
        made = code.code_of(function.__name__, given, body, [ENTRY], __file__, line)
        called = FunctionType(made, function.__globals__, None, None, (self._entry,))
        called.__defaults__ = function.__defaults__
        called.__kwdefaults__ = {**(function.__kwdefaults__ or {}), "out": None}
        functools.update_wrapper(called, function)
        called.__signature__ = signature_with_out(function)  # type: ignore[attr-defined]
        called.compiled = self  # type: ignore[attr-defined]
        return called

    def _keywords(self) -> list[str]:
        return [each.name for each in self.ir.parameters if each.kind == "keyword"]

    # ---- choosing ----

    def _choose(self, *given: Any) -> Any:
        """Calls the specialisation for these arguments, and makes it the one that is tried first.

        Args:
            given: the arguments in order, and ``out``.
        """
        given = tuple(map(argument, given))
        with self._lock:
            chosen = self._fitting(given) or self._specialise(given)
            self._entry.cell_contents = chosen.function
        return chosen.function(*given)

    def _fitting(self, given: tuple[Any, ...]) -> Specialisation | None:
        return next((each for each in reversed(self.specialisations) if each.fits(*given)), None)

    def _specialise(self, given: tuple[Any, ...]) -> Specialisation:
        """One more specialisation; beyond the last one, one that knows nothing and fits all."""
        values = dict(zip(self._names, given, strict=False))
        with_out = given[-1] is not None
        if len(self.specialisations) >= MOST_SPECIALISATIONS:
            found = Signature()
        else:
            self._generalise(values)
            found = signature_of(self.ir, values, self.outside, self._general)
        make = specialised_owned if POLICIES[self.policy].is_explicit else specialised
        made = make(self, found, with_out)
        place = len(self.specialisations) if found.conditions else 0  # the last that is tried
        self.specialisations.insert(place, made)
        return made

    def _generalise(self, values: dict[str, Any]) -> None:
        """An integer that had another value before is known by its class from now on; what was
        made for one value alone is forgotten."""
        for each in self.specialisations:
            for name, known in each.signature.arguments.items():
                value = values[name]
                if type(known) is int and type(value) is int and known != value:
                    self._general |= {name}
        self.specialisations = [
            each
            for each in self.specialisations
            if not any(type(each.signature.arguments.get(n)) is int for n in self._general)
        ]

    def outside(self, path: str) -> Any:
        """What a path from outside is now; ``MISSING`` when it is nothing yet."""
        return value_of(self.function, path)


def signature_with_out(function: FunctionType) -> inspect.Signature:
    """The signature of a function with ``out=None`` behind the others."""
    known = inspect.signature(function)
    out = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None)
    return known.replace(parameters=[*known.parameters.values(), out])
