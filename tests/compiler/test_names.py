"""What names mean: recursion under every policy, methods and functions of one name, names that hide
others or mean something else later. Each program is run compiled and as Python runs it.

The functions of a program are decorated with ``C``; ``main(x)`` gives what is compared.
"""

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

TURNS = 3

METHOD_THAT_CALLS_ITS_NAMESAKE = """
class M:
    @C
    def f(self, x):
        y = x + 1
        return f(y)
def main(x):
    r = M().f(x)
    got = kept.pop()
    return r, got
"""
PROGRAMS = {
    "recursion": """
@C
def f(x, n):
    if n == 0:
        return x
    return f(x * 2.0, n - 1)
def main(x):
    return f(x, 4), f(x, 0), f(x, 2)
""",
    "recursion with locals": """
@C
def f(x, n):
    if n == 0:
        return x * 1.0
    y = x * 0.5
    z = y + 1
    w = f(z, n - 1)
    return w + y * z
def main(x):
    return f(x, 4), f(x, 1), f(x, 6)
""",
    "fib": """
@C
def fib(n):
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)
def main(x):
    return fib(12)
""",
    "fib of tensors": """
@C
def fib(x, n):
    if n < 2:
        return x * n
    return fib(x, n - 1) + fib(x, n - 2)
def main(x):
    return fib(x, 7)
""",
    "mutual recursion": """
@C
def even(x, n):
    if n == 0:
        return x
    return odd(x + 1, n - 1)
@C
def odd(x, n):
    if n == 0:
        return x * -1
    return even(x * 2, n - 1)
def main(x):
    return even(x, 5), odd(x, 4), even(x, 0)
""",
    "method recursion": """
class M:
    def __init__(self, w): self.w = w
    @C
    def down(self, x, n):
        if n == 0:
            return x
        return self.down(x * self.w, n - 1)
def main(x):
    return M(x + 1).down(x, 3)
""",
    "method by class name": """
class M:
    @C
    def down(self, x, n):
        if n == 0:
            return x
        return M.down(self, x * 2, n - 1)
def main(x):
    return M().down(x, 3)
""",
    "static and class methods": """
class M:
    @staticmethod
    @C
    def s(x, n):
        if n == 0:
            return x
        return M.s(x * 2, n - 1)
    @classmethod
    @C
    def c(cls, x, n):
        if n == 0:
            return x
        return cls.c(x * 3, n - 1)
def main(x):
    return M.s(x, 3), M().c(x, 2)
""",
    "method with a helper's name": """
kept = []
def f(x):
    kept.append(x)
    return x * 3
"""
    + METHOD_THAT_CALLS_ITS_NAMESAKE,
    "method with a compiled helper's name": """
@C
def helper(x):
    return x * 3
class M:
    @C
    def helper(self, x):
        y = x + 1
        return helper(y)
def main(x):
    return M().helper(x)
""",
    "nested of the same name": """
def helper(x):
    return x + 100
def make():
    @C
    def helper(x, n):
        if n == 0:
            return x
        return helper(x * 2, n - 1)
    return helper
def main(x):
    return make()(x, 3)
""",
    "nested that calls the global of its outer": """
@C
def f(x):
    return x * 2
def make():
    g = f
    @C
    def inner(x):
        return g(x) + f(x)
    return inner
def main(x):
    return make()(x)
""",
    "decorator above": """
def twice(k):
    def deco(fn):
        def call(x, n):
            return fn(x, n) * k
        return call
    return deco
@twice(3)
@C
def f(x, n):
    if n == 0:
        return x
    return f(x + 1, n - 1)
def main(x):
    return f(x, 3)
""",
    "decorator above that keeps arguments": """
kept = []
def keeping(fn):
    def call(x, n):
        kept.append(x)
        return fn(x, n)
    return call
@keeping
@C
def f(x, n):
    if n == 0:
        return x
    y = x + 1
    return f(y, n - 1)
def main(x):
    r = f(x, 3)
    got = tuple(kept)
    kept.clear()
    return r, got
""",
    "redefinition": """
@C
def f(x):
    return x + 1
@C
def g(x):
    return f(x) * 2
def main(x):
    global f
    a = g(x)
    old = f
    def f2(x):
        return x + 50
    f = f2
    b = g(x)
    f = C(f2)
    c = g(x)
    f = old
    return a, b, c
""",
    "redefinition calls the old one": """
@C
def f(x):
    return x + 1
old = f
@C
def f(x):
    return old(x) * 2
def main(x):
    return f(x)
""",
    "a global that means another function later": """
kept = []
def f(x, n):
    kept.append(x)
    if n == 0:
        return x
    return f(x + 1, n - 1)
def h(x, n):
    if n == 0:
        return x
    y = x + 1
    return h(y, n - 1)
g = C(h)
keep = h
def main(x):
    global h
    def h(x, n):
        kept.append(x)
        return x
    r = g(x, 3)
    got = tuple(kept); kept.clear()
    h = keep
    return r, got
""",
    "a function that is compiled under another name": """
def f(x, n):
    if n == 0:
        return x
    return f(x + 1, n - 1)
g = C(f)
def main(x):
    return g(x, 3)
""",
    "parameter of the function's name": """
@C
def f(f):
    return f * 2
def main(x):
    return f(x)
""",
    "local of the function's name": """
@C
def g(x):
    g = x * 2
    h = g + 1
    return h
def main(x):
    return g(x)
""",
    "parameters named as builtins and modules": """
@C
def f(len, tlmem, range):
    sum = len + tlmem
    return sum * range
def main(x):
    return f(x, x + 1, 3)
""",
    "globals that shadow builtins": """
def len(x):
    return 7
def abs(x):
    return x * 10
def slice(*a):
    raise RuntimeError
@C
def f(x):
    y = x * len(x)
    n = 1
    z = y[0:n]
    return abs(y), z
def main(x):
    return f(x)
""",
    "builtin shadowed later": """
@C
def f(x, n):
    y = x
    for i in range(n):
        y = y + i
    return y * len((1, 2)) + int(2.5) + max(1, n)
def main(x):
    a = f(x, 3)
    g = globals()
    g["range"] = lambda n: (10, 20)
    g["len"] = lambda v: 9
    g["int"] = lambda v: 100
    g["max"] = lambda *v: 1000
    try:
        b = f(x, 3)
    finally:
        del g["range"], g["len"], g["int"], g["max"]
    c = f(x, 3)
    return a, b, c
""",
    "cell filled later, and again": """
def make():
    @C
    def f(x):
        return g(x) + scale
    scale = 2.0
    @C
    def g(x):
        return x * 3
    def set(v, h):
        nonlocal scale, g
        scale, g = v, h
    return f, set
def main(x):
    f, set = make()
    a = f(x)
    set(5.0, lambda x: x * 10)
    b = f(x)
    set(x, lambda x: x)
    return a, b, f(x)
""",
    "unbound local": """
@C
def f(x, flag):
    if flag:
        y = x + 1
    return y
def main(x):
    a = f(x, True)
    try:
        f(x, False)
    except UnboundLocalError as e:
        return a, "unbound", str(e)
    return "no error"
""",
    "local that is a global too, read before": """
y = 3
@C
def f(x):
    z = x * y
    y = z + 1
    return y
def main(x):
    try:
        return f(x)
    except UnboundLocalError as e:
        return "unbound", str(e)
""",
    "missing global": """
@C
def f(x):
    return nothing(x)
def main(x):
    try:
        f(x)
    except NameError as e:
        text = str(e)
    globals()["nothing"] = lambda v: v * 2
    try:
        return text, f(x)
    finally:
        del globals()["nothing"]
""",
    "loop variable shadows a global": """
i = 100
@C
def f(x):
    for i in range(3):
        x = x + i
    return x * i
def main(x):
    return f(x), i
""",
    "deleted name": """
@C
def f(x):
    y = x + 1
    z = y * 2
    del y
    return z
@C
def g(x):
    y = x + 1
    del y
    return y
def main(x):
    a = f(x)
    try:
        g(x)
    except UnboundLocalError as e:
        return a, str(e)
""",
    "dataclass shadowed later": """
from dataclasses import dataclass
@dataclass
class Layer:
    weight: object
    bias: object
@C
def f(x):
    s = Layer(x * 2, x + 1)
    return s.weight - s.bias
def main(x):
    a = f(x)
    g = globals()
    old = g["Layer"]
    class Other:
        def __init__(self, w, b):
            self.weight, self.bias = w * 10, b * 100
    g["Layer"] = Other
    try:
        b = f(x)
    finally:
        g["Layer"] = old
    return a, b, f(x)
""",
    "a function named as a dataclass field and a global": """
w = 5.0
class M:
    def __init__(self): self.w = 2.0
    @C
    def w2(self, x):
        return x * self.w + w
def main(x):
    return M().w2(x)
""",
    "names that begin with two underscores": """
__secret = 7.0
_M__secret = 3.0
class M:
    @C
    def f(self, x):
        __local = x * __secret
        return __local + 1
def main(x):
    return M().f(x)
""",
    "locals called as the code's own": """
@C
def f(x, own, enter):
    out = x * 2
    result = out + own
    function = result * enter
    around = function - 1
    return around
def main(x):
    return f(x, x, 2.0)
""",
    "global reads between changes": """
state = 1.0
def bump():
    global state
    state = state + 1
    return 0
@C
def f(x):
    a = x * state
    bump()
    return a + x * state
def main(x):
    global state
    state = 1.0
    return f(x), f(x)
""",
    "kept in a list": """
kept = []
@C
def f(x):
    y = x + 1
    kept.append(y)
    return y * 2
def main(x):
    r = f(x)
    got = kept.pop()
    return r, got
""",
    "default argument reads a global": """
S = 4.0
@C
def f(x, k=S):
    return x * k
def main(x):
    return f(x), f(x, 2.0)
""",
    "recursion passes a struct": """
from dataclasses import dataclass
@dataclass
class Layer:
    w: object
    b: object
@C
def f(layer, n):
    if n == 0:
        return layer
    w = layer.w * 2
    return f(Layer(w, layer.b), n - 1)
def main(x):
    s = f(Layer(x, x + 1), 3)
    return s.w * 1.0, s.b * 1.0
""",
    "recursion that raises": """
@C
def f(x, n):
    if n == 0:
        raise ValueError("bottom")
    y = x + 1
    return f(y, n - 1) + y
def main(x):
    try:
        f(x, 3)
    except ValueError as e:
        return str(e)
""",
    "recursion too deep": """
@C
def f(x, n):
    y = x + 1
    return f(y, n + 1)
def main(x):
    try:
        f(x, 0)
    except RecursionError:
        return "deep"
""",
    "methods of two classes": """
class A:
    @C
    def run(self, x):
        return x + 1
class B(A):
    @C
    def run(self, x):
        return A.run(self, x) * 2
def main(x):
    return B().run(x), A().run(x)
""",
    "a callable object by the function's name": """
kept = []
class Keep:
    def __call__(self, x):
        kept.append(x)
        return x * 2
f = Keep()
"""
    + METHOD_THAT_CALLS_ITS_NAMESAKE,
    "kept in a module": """
import types
m = types.ModuleType("m")
@C
def f(x):
    y = x + 1
    m.kept = y
    return y * 2
def main(x):
    r = f(x)
    got = m.kept
    del m.kept
    return r, got
""",
    "kept in a dict": """
kept = {}
@C
def f(x):
    y = x + 1
    kept["y"] = y
    return y * 2
@C
def g(x):
    y = x + 1
    kept["y"] = y
    return y
def main(x):
    r = f(x)
    got = kept.pop("y")
    s = g(x)
    return r, got, s, kept.pop("y")
""",
    "len of a subclass and print": """
@C
def f(x):
    n = len(x)
    return x * n, isinstance(x, float), type(x).__name__
def main(x):
    return f(x)
""",
}


def contents(value: Any) -> Any:
    """A result as something that can be compared."""
    if isinstance(value, tuple | list):
        return tuple(map(contents, value))
    if isinstance(value, tlmem.Tensor):
        return value.shape, value.dtype, value.numpy().tobytes()
    return value


def outcomes(name: str, decorate: Any) -> list[Any]:
    """What ``main`` gives in some turns; the functions forget what they planned."""
    made: list[Any] = []

    def keeping(function: Any) -> Any:
        made.append(decorate(function))
        return made[-1]

    source, file = PROGRAMS[name].lstrip(), f"<program {name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    space: dict[str, Any] = {"C": keeping, "__name__": __name__}
    exec(compile(source, file, "exec"), space)
    x = tlmem.tensor(np.arange(1, 5, dtype=np.float32))
    found = [contents(space["main"](x)) for _ in range(TURNS)]
    for each in made:
        if hasattr(each, "compiled"):
            each.compiled.clear()
    space.clear()
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_names_mean_what_they_mean_in_python(name: str) -> None:
    expected = outcomes(name, lambda function: function)
    for policy in SOUND:
        before = live_objects()
        assert outcomes(name, compiled(policy=policy)) == expected, policy
        if live_objects() != before:
            gc.collect()
        assert live_objects() == before, policy


def test_a_range_of_the_program_is_refused_by_what_it_is() -> None:
    source = (
        "def range(n):\n    return (5, 6)\ndef f(x):\n    for i in range(2):\n        x = x + i\n"
    )
    linecache.cache["<own range>"] = (len(source), None, source.splitlines(True), "<own range>")
    space: dict[str, Any] = {}
    exec(compile(source, "<own range>", "exec"), space)
    with pytest.raises(tlmem.NotCompilable, match="it is not Python's range here but <function"):
        compiled(space["f"])
