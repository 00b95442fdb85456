"""From Python to the IR: the order of Python, one operation a statement, places of the file."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import tlmem
from tlmem import relu
from tlmem.compiler import front, ir, printer, walking

SIZE = 3


@dataclass
class Layer:
    w: Any
    b: Any


def body_of(function: Any) -> str:
    """The text of the IR without its first line."""
    return printer.text(front.read(function)).partition("\n")[2]


def test_expressions_are_taken_apart_in_the_order_of_python() -> None:
    def forward(x, w):
        h = relu(x @ w - 1) ** 2
        return tlmem.sum(h, axis=0) + x.sum(1) * SIZE

    assert body_of(forward) == (
        "  3  %1 = matmul x, w\n"
        "  4  %2 = subtract %1, 1\n"
        "  5  %3 = relu %2\n"
        "  6  h = power %3, 2\n"
        "  7  %4 = sum h, axis=0\n"
        "  8  %5 = sum x, 1\n"
        "  9  %6 = multiply %5, @SIZE\n"
        " 10  %7 = add %4, %6\n"
        " 11  return %7\n"
    )


def test_what_is_surely_a_number_stays_one_statement() -> None:
    def forward(x, n: int):
        rows = x.shape[0] // 2 + SIZE
        half = math.sqrt(rows) if n > 1 else -n
        return x[:rows] * half, x[n:, 0]

    assert body_of(forward) == (
        "  3  rows = plain x.shape[0] // 2 + SIZE\n"
        "  4  half = plain math.sqrt(rows) if n > 1 else -n\n"
        "  5  %1 = plain %slice(None, rows, None)\n"
        "  6  %2 = getitem x, %1\n"
        "  7  %3 = multiply %2, half\n"
        "  8  %4 = plain %slice(n, None, None)\n"
        "  9  %5 = getitem x, (%4, 0)\n"
        " 10  return (%3, %5)\n"
    )


def test_conditions_compute_no_more_than_python_does() -> None:
    def forward(x, y):
        x = y and x + 1 or x
        return x if x is not None else y * 2

    assert body_of(forward) == (
        "  3  %1 = y\n"
        "  4  if %1:\n"
        "  5    %1 = add x, 1\n"
        "  6  if %1:\n"
        "     else:\n"
        "  7    %1 = x\n"
        "  8  x = %1\n"
        "  9  %2 = plain x is not None\n"
        " 10  if %2:\n"
        " 11    %3 = x\n"
        "     else:\n"
        " 12    %3 = multiply y, 2\n"
        " 13  return %3\n"
    )


def test_loops_branches_and_early_returns_keep_their_form() -> None:
    def forward(x, n):
        for step in tlmem.steps(n):
            if step % 2 == 0:
                continue
            x += 1
        while not x.sum() > n:
            x = x * 2
            if n:
                return x
            break
        for a, b in ((x, 1), (x, 2)):
            x = a + b
        return None

    assert body_of(forward) == (
        "  3  for step in steps n:\n"
        "  4    %1 = plain step % 2 == 0\n"
        "  5    if %1:\n"
        "  6      continue\n"
        "  7    x = in place add 1\n"
        "  8  while %4, computed by:\n"
        "  9    %2 = sum x\n"
        " 10    %3 = greater %2, n\n"
        " 11    %4 = plain not %3\n"
        "     do:\n"
        " 12    x = multiply x, 2\n"
        " 13    if n:\n"
        " 14      return x\n"
        " 15    break\n"
        " 16  for a, b in items (x, 1), (x, 2):\n"
        " 17    x = add a, b\n"
        " 18  return None\n"
    )


def test_structs_fields_and_items() -> None:
    def forward(layer, x):
        made = Layer(x, b=layer.b)
        made.w = made.w.T @ x
        made.b += 1
        x[0] = made["b"]
        x[1:] -= 2
        both = tlmem.struct([made, x])
        return both

    assert body_of(forward) == (
        "  3  %1 = field layer.b\n"
        "  4  made = struct @Layer(x, b=%1)\n"
        "  5  %2 = field made.w\n"
        "  6  %3 = field %2.T\n"
        "  7  %4 = matmul %3, x\n"
        "  8  field made.w = %4\n"
        "  9  %5 = field made.b\n"
        " 10  %5 = in place add 1\n"
        " 11  field made.b = %5\n"
        " 12  %6 = field made.b\n"
        " 13  item x[0] = %6\n"
        " 14  %7 = getitem x, slice(1, None, None)\n"
        " 15  %7 = in place subtract 2\n"
        " 16  item x[slice(1, None, None)] = %7\n"
        " 17  both = struct @tlmem.struct([made, x])\n"
        " 18  return both\n"
    )


def test_names_several_targets_and_texts() -> None:
    def forward(x, y):
        a = b = x + y
        a, b = b, a
        del y
        assert a is not None, "no a"
        print(f"{a.item():.{SIZE}f} {b!r}")
        later(a)
        return forward(b, x)

    assert body_of(forward) == (
        "  3  %1 = add x, y\n"
        "  4  a = %1\n"
        "  5  b = %1\n"
        "  6  a, b = unpack (b, a)\n"
        "  7  del y\n"
        "  8  %2 = plain a is not None\n"
        "  9  if %2:\n"
        "     else:\n"
        " 10    %3 = call unknown @AssertionError('no a')\n"
        " 11    raise %3\n"
        " 12  %4 = item a\n"
        " 13  %5 = plain f'{%4:.{SIZE}f} {b!r}'\n"
        " 14  plain print(%5)\n"
        " 15  call unknown @later(a)\n"
        " 16  %6 = call @forward(b, x)\n"
        " 17  return %6\n"
    )


def test_a_name_from_outside_is_read_before_what_may_change_it() -> None:
    def forward(x):
        return SIZE_OF + later(x)

    assert body_of(forward) == (
        "  2  %1 = @SIZE_OF\n"
        "  3  %2 = call unknown @later(x)\n"
        "  4  %3 = add %1, %2\n"
        "  5  return %3\n"
    )


def test_a_name_that_hides_a_function_of_python_is_what_the_program_says() -> None:
    def forward(x, len):
        return len(x), slice(1, x)

    assert body_of(forward) == (
        "  3  %1 = call unknown len(x)\n  4  %2 = plain slice(1, x)\n  5  return (%1, %2)\n"
    )


def test_places_are_those_of_the_file_and_private_names_those_of_the_class() -> None:
    class Model:
        def forward(self, x):
            return self.__weight @ (
                x + 1  # two lines below
            )

    function = front.read(Model.forward)
    first = Model.forward.__code__.co_firstlineno
    places = {printer.statement_text(s): s.place for s in walking.walk(function.body)}

    assert function.first_line == first
    assert function.source[0].strip() == "def forward(self, x):"
    assert list(places) == [
        "%1 = field self._Model__weight",
        "%2 = add x, 1",
        "%3 = matmul %1, %2",
        "return %3",
    ]
    assert places["%2 = add x, 1"] == ir.Place(first + 2, 16, first + 2, 21)
    assert [places[text].line for text in places] == [first + 1, first + 2, first + 1, first + 1]


def test_arguments_are_known_with_annotations_defaults_and_kinds() -> None:
    def forward(a: int, /, b: Layer, c=1, *, d: NoSuchThing = 2):  # noqa: F821
        return a

    found = front.read(forward).parameters
    kinds = [(each.name, each.kind, each.has_default) for each in found]
    assert kinds == [
        ("a", "positional", False),
        ("b", "either", False),
        ("c", "either", True),
        ("d", "keyword", True),
    ]
    assert [each.annotation for each in found] == [int, Layer, None, "NoSuchThing"]


SIZE_OF = 1


def later(x):
    return x
