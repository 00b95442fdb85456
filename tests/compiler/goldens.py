"""What each pass says of each fixture, as text; the files in ``golden`` hold what it should say.

``python tests/compiler/goldens.py``, with ``tests`` on the path, writes them anew: read the change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from compiler import fixtures

from tlmem.compiler import front, ir, printer
from tlmem.compiler.passes import liveness, moves, origins, shapes, slots
from tlmem.compiler.passes.slots import FrameLayout
from tlmem.compiler.walking import walk

FOLDER = Path(__file__).parent / "golden"


@dataclass
class Passes:
    """All passes over one function, each run when it is asked for."""

    function: Any
    arguments: tuple[Any, ...]

    @cached_property
    def ir(self) -> ir.Function:
        return front.read(self.function)

    @cached_property
    def shapes(self) -> shapes.Shapes:
        names = [each.name for each in self.ir.parameters]
        outside = shapes.Outside(fields=self._fields)
        return shapes.infer(self.ir, dict(zip(names, self.arguments, strict=True)), outside)

    def _fields(self, path: str) -> Any:
        return shapes.class_fields(self.function.__globals__.get(path))

    @cached_property
    def liveness(self) -> liveness.Liveness:
        return liveness.live(self.ir)

    @cached_property
    def origins(self) -> origins.Origins:
        return origins.origins(self.ir, self.shapes, self.liveness)

    @cached_property
    def slots(self) -> slots.Slots:
        return slots.slots(self.ir, self.shapes, self.liveness, self.origins)

    @cached_property
    def layout(self) -> FrameLayout:
        return slots.layout(self.slots.placed)

    @cached_property
    def destinations(self) -> moves.Destinations:
        return moves.destinations(self.ir, self.shapes, self.liveness, self.origins)


def of(function: Any) -> Passes:
    """The passes over a fixture."""
    return Passes(function, fixtures.CASES[function])


def lives_text(passes: Passes) -> str:
    names = {each.number: getattr(each, "target", "") for each in walk(passes.ir.body)}
    lines = [f"{m:>3}  {names[m]}: [{first}, {last}]" for m, first, last in passes.origins.lives]
    lines += [f"{m:>3}  escapes: {why}" for m, why in sorted(passes.origins.escaped.items())]
    return "\n".join(lines)


def slots_text(passes: Passes) -> str:
    found, laid = passes.slots, passes.layout
    lines = [
        f"{each.number:>3}  {each.name}: slot {each.slot}, {each.nbytes} bytes at "
        f"{laid.offsets[each.number]}"
        for each in found.placed
    ]
    lines += [f"{number:>3}  no slot: {why}" for number, why in sorted(found.refused.items())]
    lines.append(f"     {laid.nbytes} bytes, at least {laid.lower_bound_bytes}")
    return "\n".join(lines)


def moves_text(passes: Passes) -> str:
    found = moves.last_uses(passes.ir, passes.liveness)
    lines = [f"{each.number:>3}  moves {each.name}" for each in found]
    lines += [f"{each:>3}  into out" for each in sorted(passes.destinations.direct)]
    copied = passes.destinations.copied
    lines += [f"{number:>3}  copied into out: {why}" for number, why in copied.items()]
    return "\n".join(lines)


TEXTS: dict[str, Callable[[Passes], str]] = {
    "ir": lambda passes: printer.text(passes.ir),
    "liveness": lambda passes: liveness.text(passes.liveness),
    "shapes": lambda passes: shapes.listing(passes.shapes),
    "origins": lives_text,
    "slots": slots_text,
    "moves": moves_text,
}
"""Name of a pass -> its text about a function."""


def text(name: str) -> str:
    """What a pass says of all fixtures."""
    parts: Iterator[str] = (
        f"{function.__name__}\n{TEXTS[name](of(function)).rstrip()}\n"
        for function in fixtures.CASES
    )
    return "\n".join(parts)


if __name__ == "__main__":
    for each in TEXTS:
        (FOLDER / f"{each}.txt").write_text(text(each), encoding="utf-8")
