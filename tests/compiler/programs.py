"""Random functions in the part of Python that can be compiled, as source and as functions.

Covers: names that are shadowed, swapped, deleted and unpacked; views, writing in place, structs,
branches, loops with ``break`` and ``continue``, early returns, calls of compiled functions.
Every variable has a value wherever it is read, and elements stay small.
"""

from __future__ import annotations

import linecache
from collections.abc import Iterator
from random import Random
from typing import Any

from compiler.fixtures import Layer

import tlmem

SIZE = 4
MATRIX, VECTOR = "matrix", "vector"
NAMES = {MATRIX: ("a", "b", "c", "d", "e"), VECTOR: ("u", "v", "w")}
Known = dict[str, str]
"""Variables that surely have a value, and of which kind it is."""


class Writer:
    """Writes one function."""

    def __init__(self, seed: int) -> None:
        self.r = Random(seed)
        self.lines: list[str] = []
        self.loops = 0
        self.counters = 0

    def source(self) -> str:
        """The function ``f(a, b, u, n)``: two matrices, a vector and a number."""
        known: Known = {"a": MATRIX, "b": MATRIX, "u": VECTOR}
        known = self.block(known, 1, self.r.randint(4, 9))
        self.write(1, f"return {self.result(known)}")
        return "\n".join(["def f(a, b, u, n):", *self.lines, ""])

    def write(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def block(self, known: Known, depth: int, count: int) -> Known:
        """Some statements; the variables that have a value behind them."""
        for _ in range(count):
            kind = self.r.choices(
                ("matrix", "vector", "alias", "place", "struct", "if", "loop", "call", "del"),
                (6, 3, 3, 2, 1, 2, 2, 1, 0.4),
            )[0]
            if depth > 3 and kind in ("if", "loop"):
                kind = "matrix"
            known = getattr(self, f"write_{kind}")(known, depth)
        return known

    # ---- values ----

    def pick(self, known: Known, kind: str) -> str:
        return self.r.choice(sorted(name for name, each in known.items() if each == kind))

    def number(self) -> str:
        return self.r.choice(("0.5", "-1.0", "2", "n", "0.25"))

    def matrix(self, known: Known) -> str:
        """An expression that gives a matrix."""
        r, one, other = self.r, self.pick(known, MATRIX), self.pick(known, MATRIX)
        vector = self.pick(known, VECTOR)
        return r.choice(
            (
                f"{one} + {other}",
                f"{one} - {vector}",
                f"{one} * {self.number()}",
                f"tlmem.tanh({one} @ {other})",
                f"tlmem.maximum({one}, {other} * 0.5)",
                f"tlmem.relu({one})",
                f"{one}.T",
                f"{one}.reshape(2, 8).reshape(4, 4)",
                f"{one}.T.reshape(16).reshape(4, 4)",
                f"tlmem.softmax({one}, 1)",
                f"tlmem.where({one} > 0, {other}, {one})",
                f"tlmem.stack([{vector}, {one}[1], {other}[0], {vector}])",
                f"{one}.copy()",
                f"({one} + {vector}) * ({other} - 1)",
                f"tlmem.tanh(tlmem.log_softmax({one}, {r.choice((0, 1))}))",
                f"tlmem.sigmoid({one}) - {other}.mean(1, True)",
                f"{one} - tlmem.tanh(tlmem.var({other}, {r.choice((0, 1))}))",
                f"tlmem.concat([{one}[:2], {other}[2:]])",
                f"tlmem.concat([{one}, {other}], 1)[:, 2:6]",
                f"tlmem.clip({one}, -1, 1)",
                f"{one} * (n * 0.25)",
                f"tlmem.exp(tlmem.tanh({one} / (n + 1))) + {vector}.sum()",
                f"tlmem.tanh({one}.T @ {other}.T)",
            )
        )

    def vector(self, known: Known) -> str:
        """An expression that gives a vector."""
        r, one, vector = self.r, self.pick(known, MATRIX), self.pick(known, VECTOR)
        axis = r.choice((0, 1))
        return r.choice(
            (
                f"tlmem.tanh({one}.sum({axis}))",
                f"{one}.max({axis})",
                f"{one}[{r.randrange(SIZE)}]",
                f"{one}[:, {r.randrange(SIZE)}]",
                f"{vector} * 0.5",
                f"tlmem.tanh({one} @ {vector})",
                f"{one}.reshape(16)[4:8]",
                f"{vector} - {one}[0]",
                f"{one}.mean({axis})",
                f"tlmem.tanh(tlmem.var({one}, {axis}, correction=0))",
                f"tlmem.softmax({vector})",
            )
        )

    def condition(self, known: Known) -> str:
        r = self.r
        if r.random() < 0.5:
            return f"{self.pick(known, MATRIX)}.sum() > {r.choice(('0', 'n', '1.5'))}"
        return r.choice(("n > 1", "n == 2", "n < 3", "n > 5"))

    def result(self, known: Known) -> str:
        r = self.r
        one = r.choice((self.pick(known, MATRIX), self.matrix(known)))
        if r.random() < 0.3:
            return f"{one}, {self.pick(known, VECTOR)}"
        return one

    # ---- statements ----

    def write_matrix(self, known: Known, depth: int) -> Known:
        name = self.r.choice(NAMES[MATRIX])
        self.write(depth, f"{name} = {self.matrix(known)}")
        return {**known, name: MATRIX}

    def write_vector(self, known: Known, depth: int) -> Known:
        name = self.r.choice(NAMES[VECTOR])
        self.write(depth, f"{name} = {self.vector(known)}")
        return {**known, name: VECTOR}

    def write_alias(self, known: Known, depth: int) -> Known:
        one, other = self.pick(known, MATRIX), self.pick(known, MATRIX)
        how = self.r.random()
        if how < 0.5:
            name = self.r.choice(NAMES[MATRIX])
            self.write(depth, f"{name} = {one}")
            return {**known, name: MATRIX}
        if how < 0.8 and one != other:
            self.write(depth, f"{one}, {other} = {other}, {one}")
            return known
        first, second = self.r.sample(NAMES[MATRIX], 2)
        self.write(depth, f"t = ({one}, {other} * 0.5)")
        self.write(depth, f"{first}, {second} = t")
        return {**known, first: MATRIX, second: MATRIX}

    def write_place(self, known: Known, depth: int) -> Known:
        """Writing in place: behind the name, and behind every other name of the same memory."""
        one, vector = self.pick(known, MATRIX), self.pick(known, VECTOR)
        row = self.r.randrange(SIZE)
        text = self.r.choice(
            (
                f"{one} += {self.pick(known, MATRIX)}",
                f"{one} *= 0.5",
                f"{one} -= {vector}",
                f"{vector} += {one}[{row}]",
                f"{one}[{row}] = {vector}",
                f"{one}[:, {row}] = 0.5",
            )
        )
        self.write(depth, text)
        return known

    def write_struct(self, known: Known, depth: int) -> Known:
        one, vector = self.pick(known, MATRIX), self.pick(known, VECTOR)
        name = self.r.choice(NAMES[MATRIX])
        self.write(depth, f"s = Layer({one}, bias={vector})")
        if self.r.random() < 0.5:
            self.write(depth, f"s.weight = {self.matrix(known)}")
        self.write(depth, f"{name} = s.weight + s.bias")
        return {**known, name: MATRIX}

    def write_call(self, known: Known, depth: int) -> Known:
        name, one, other = (self.r.choice(NAMES[MATRIX]), *self.two(known))
        self.write(depth, f"{name} = {self.r.choice(('halved', 'either'))}({one}, {other})")
        return {**known, name: MATRIX}

    def two(self, known: Known) -> tuple[str, str]:
        return self.pick(known, MATRIX), self.pick(known, MATRIX)

    def write_del(self, known: Known, depth: int) -> Known:
        name = self.pick(known, MATRIX)
        if sum(kind == MATRIX for kind in known.values()) < 3 or self.loops:
            return self.write_matrix(known, depth)
        self.write(depth, f"del {name}")
        return {each: kind for each, kind in known.items() if each != name}

    def write_if(self, known: Known, depth: int) -> Known:
        self.write(depth, f"if {self.condition(known)}:")
        then = self.block(known, depth + 1, self.r.randint(1, 2))
        ended = self.leave(then, depth + 1)
        if self.r.random() < 0.5:
            self.write(depth, "else:")
            orelse = self.block(known, depth + 1, self.r.randint(1, 2))
        else:
            orelse = known
        return orelse if ended else {n: k for n, k in then.items() if orelse.get(n) == k}

    def leave(self, known: Known, depth: int) -> bool:
        """Sometimes leaves the loop, the turn or the function; whether it did."""
        how = self.r.random()
        if how < 0.12:
            self.write(depth, f"return {self.result(known)}")
        elif how < 0.5 and self.loops:
            self.write(depth, self.r.choice(("break", "continue")))
        else:
            return False
        return True

    def write_loop(self, known: Known, depth: int) -> Known:
        self.loops += 1
        if self.r.random() < 0.6:
            over = self.r.choice(("range(3)", "range(n)", "(0, 1)"))
            self.write(depth, f"for i{depth} in {over}:")
        else:
            self.counters += 1
            counter = f"k{self.counters}"
            self.write(depth, f"{counter} = 0")
            self.write(depth, f"while {counter} < {self.r.choice(('2', 'n'))}:")
            self.write(depth + 1, f"{counter} = {counter} + 1")
        behind = self.block(known, depth + 1, self.r.randint(1, 4))
        self.loops -= 1
        return {name: kind for name, kind in known.items() if behind.get(name) == kind}


def halved(x: Any, y: Any) -> Any:
    return (x - y) * 0.5


def either(x: Any, y: Any) -> Any:
    if x.sum() > y.sum():
        return x
    return y * 1.0


def function_of(source: str, number: int, **names: Any) -> Any:
    """The function of a source, which can be read again as that of a file can."""
    file = f"<random program {number}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    space = {"tlmem": tlmem, "Layer": Layer, "halved": halved, "either": either, **names}
    exec(compile(source, file, "exec"), space)
    return space["f"]


def functions(count: int, first: int = 0) -> Iterator[tuple[int, Any]]:
    """So many random functions, with their numbers."""
    for seed in range(first, first + count):
        yield seed, function_of(Writer(seed).source(), seed)
