"""What a compiled function gives away to be kept lives on, held by its handle: under every policy,
however it gets there, whatever it is, and also when a function that it calls gives it away."""

from __future__ import annotations

import gc
import linecache
from typing import Any

import numpy as np
import pytest
from runtime.trace import live_objects

import tlmem
from tlmem.compiler.compiled import compile as compiled
from tlmem.compiler.policies import SOUND
from tlmem.runtime import core

MODULE = """
import functools, types
from dataclasses import dataclass

@dataclass
class Pair:
    a: object
    b: object

class Box:
    pass

class Setter:
    def __set__(self, owner, value):
        owner.__dict__["_v"] = value
    def __get__(self, owner, kind=None):
        return owner.__dict__["_v"]

class Described:
    v = Setter()

def cell():
    value = None
    def get():
        return value
    def set(new):
        nonlocal value
        value = new
    return get, set

def defaulted(x=None):
    return x

def set_default(x):
    defaulted.__defaults__ = (x,)

def set_partial(x):
    box.call = functools.partial(len, x)

@C
def keep(x):
    many.append(x)
    return 0

@C
def keep_deeper(x):
    return keep(x)

@C
def same(x):
    return x

named, many, module, box, described, pair = {}, [], types.ModuleType("m"), Box(), Described(), None
get, set = cell()

@C
def function(x, key, pair, n):
    {made}
    {sink}
    {after}
"""

SINKS = {
    "item of a dict": ("named['k'] = y", "named['k']"),
    "item of a dict by a variable": ("named[key] = y", "named['k']"),
    "setdefault": ("named.setdefault('k', y)", "named['k']"),
    "list in a dict": ("named['k'] = [y, y]", "named['k'][0]"),
    "tuple with a name": ("t = (y, 2)\n    named['k'] = t", "named['k'][0]"),
    "struct": ("s = Pair(y, 1.0)\n    named['k'] = s", "named['k'].a"),
    "append": ("many.append(y)", "many[0]"),
    "append of a tuple": ("many.append((y, 1))", "many[0][0]"),
    "attribute of a module": ("module.v = y", "module.v"),
    "attribute of an object": ("box.v = y", "box.v"),
    "descriptor": ("described.v = y", "described.v"),
    "cell": ("set(y)", "get()"),
    "default of an argument": ("set_default(y)", "defaulted()"),
    "partial": ("set_partial(y)", "box.call.args[0]"),
    "compiled function": ("keep(y)", "many[0]"),
    "compiled function further in": ("keep_deeper(y)", "many[0]"),
    "field of an argument": ("pair.a = y", "pair.a"),
    "result of a compiled function": ("z = same(y)\n    named['k'] = z", "named['k']"),
}
"""How something is kept -> statements, and the expression that gives it afterwards."""

MADE = {
    "result": "y = x * 2",
    "view": "w = x * 2\n    y = w[0:2]",
    "view of an argument": "y = x[0:2]",
    "transposed": "w = x * 2\n    y = w.T",
    "second name": "w = x * 2\n    y = w",
    "one of two": "y = x * 2\n    if n:\n        y = x + 1",
    "of a loop": "y = x\n    for i in range(2):\n        y = y + i",
    "argument": "y = x",
}

AFTER = {
    "nothing": "return 0",
    "returned": "return y",
    "used": "return y + 1",
    "other value": "y = x * 5\n    return y",
}

CASES = [
    *[("result", sink, "nothing") for sink in SINKS],
    *[
        (made, sink, after)
        for made in MADE
        for sink, after in (
            ("item of a dict", "nothing"),
            ("compiled function", "used"),
            ("tuple with a name", "other value"),
        )
    ],
    *[("result", "result of a compiled function", after) for after in AFTER],
    *[("view", "append", after) for after in AFTER],
]


def outcome(source: str, expression: str, decorate: Any) -> list[Any]:
    """What is kept and what is returned in two turns."""
    made: list[Any] = []

    def keeping(function: Any) -> Any:
        made.append(decorate(function))
        return made[-1]

    file = f"<kept {hash(source)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    space: dict[str, Any] = {"C": keeping}
    exec(compile(source, file, "exec"), space)
    x, found = tlmem.tensor(np.arange(1, 5, dtype=np.float32)), []
    for _ in range(2):
        space["many"].clear()
        space["named"].clear()
        space["pair"] = space["Pair"](1, 2)
        result = space["function"](x, "k", space["pair"], 1)
        kept = eval(expression, space)
        shown = result.tolist() if isinstance(result, tlmem.Tensor) else result
        holders = [core.holder_text(each) for each in core.holders_of(kept.handle)]
        assert "floating" not in holders, holders
        found.append((kept.tolist(), shown))
    for each in made:
        if hasattr(each, "compiled"):
            each.compiled.clear()
    space.clear()
    return found


@pytest.mark.parametrize("made, sink, after", dict.fromkeys(CASES))
def test_what_is_kept_lives_on_with_its_handle(made: str, sink: str, after: str) -> None:
    statements, expression = SINKS[sink]
    parts = {"{made}": MADE[made], "{sink}": statements, "{after}": AFTER[after]}
    source = MODULE
    for mark, text in parts.items():
        source = source.replace(mark, text)
    expected = outcome(source, expression, lambda function: function)
    for policy in SOUND:
        before = live_objects()
        assert outcome(source, expression, compiled(policy=policy)) == expected, policy
        if live_objects() != before:
            gc.collect()
        assert live_objects() == before, policy
