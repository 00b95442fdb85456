"""What ``@tlmem.compile`` refuses: with the line, the construct, and what to write instead."""

from __future__ import annotations

import linecache
import re

import pytest

from tlmem.compiler import front
from tlmem.compiler.errors import NotCompilable
from tlmem.errors import TlmemError

# body of a function of x -> construct, line of it in the body from 1, words of the advice
KINDS = {
    "with": ("with lock:\n    x = x + 1", "'with'", 1, "where the function is called"),
    "try": ("try:\n    x = x + 1\nfinally:\n    pass", "'try'", 1, "catch the exception"),
    "except star": ("try:\n    x + 1\nexcept* E:\n    pass", "'try'", 1, "catch the exception"),
    "def": ("def g(): return 1\nreturn g()", "'def'", 1, "define it outside"),
    "async def": ("async def g(): return 1", "'async def'", 1, "define it outside"),
    "class": ("class C: pass", "'class'", 1, "define it outside"),
    "lambda": ("y = x + 1\nf = lambda: y", "'lambda'", 2, "function outside"),
    "global": ("global g\ng = x", "'global'", 1, "return the value"),
    "nonlocal": ("nonlocal lock\nlock = x", "'nonlocal'", 1, "return the value"),
    "import": ("import math\nreturn x", "'import'", 1, "top of the file"),
    "from import": ("from math import pi\nreturn x", "'import'", 1, "top of the file"),
    "match": ("match x:\n    case 1: pass", "'match'", 1, "use if and elif"),
    "yield": ("yield x", "'yield'", 1, "return a tuple"),
    "yield from": ("yield from x", "'yield from'", 1, "return a tuple"),
    "list comprehension": ("return [y for y in x]", "a list comprehension", 1, "use a for loop"),
    "set comprehension": (
        "return {y for y in x}",
        "a set comprehension",
        1,
        "that is not compiled",
    ),
    "dict comprehension": ("return {y: y for y in x}", "a dict comprehension", 1, "not compiled"),
    "generator": ("return sum(y for y in x)", "a generator expression", 1, "use a for loop"),
    "walrus": ("if (y := x.sum()):\n    return y", "':='", 1, "statement of its own"),
    "star in a call": ("return f(*x)", "'*'", 1, "name each value"),
    "stars in a call": ("return f(**x)", "'**'", 1, "name each argument"),
    "star in an unpacking": ("a, *b = x", "'*' in an unpacking", 1, "as many names"),
    "nested unpacking": ("(a, b), c = x", "an unpacking into '(a, b)'", 1, "two statements"),
    "dict display": ("return {'a': x}", "a dict display", 1, "use a dataclass"),
    "set display": ("return {x, 1}", "a set display", 1, "use a tuple"),
    "chained comparison": ("return 0 < x < 1", "a chain of comparisons", 1, "two statements"),
    "else of for": (
        "for i in range(3):\n    x\nelse:\n    x = 1",
        "'else' of 'for'",
        4,
        "variable",
    ),
    "else of while": ("while x:\n    x\nelse:\n    x = 1", "'else' of 'while'", 4, "variable"),
    "loop over a call": ("for i, y in zip(x, x):\n    y", "a loop over 'zip'", 1, "range"),
    "loop into a field": ("for x.i in range(3):\n    x", "a loop over a field", 1, "over a name"),
    "del of a field": ("del x.field", "'del x.field'", 1, "set it to None"),
    "shift": ("return x << 1", "the operator of 'x << 1'", 1, "use + -"),
    "shift in place": ("x <<= 1", "the operator of 'x <<= 1'", 1, "use + -"),
    "unary plus": ("return +x", "unary '+'", 1, "x.copy()"),
    "bare raise": ("raise", "'raise' without an error", 1, "name the error"),
    "super": ("return super().f(x)", "'super()'", 1, "super(Class, self)"),
    "call of a call": ("return x.f()(1)", "a call of 'x.f()'", 1, "give the function a name"),
    "deep in a loop": ("while x:\n    if x:\n        with x: x", "'with'", 3, "where the"),
    "await in a sum": ("return x + (yield)", "'yield'", 1, "return a tuple"),
}


def function_of(source: str, name: str, namespace: dict | None = None):
    """The function of a source text, as it would be in a file of that name."""
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    namespace = {} if namespace is None else namespace
    exec(compile(source, name, "exec"), namespace)
    return namespace


@pytest.mark.parametrize("body, construct, line, advice", KINDS.values(), ids=KINDS.keys())
def test_a_construct_is_refused_with_its_line_and_an_advice(body, construct, line, advice) -> None:
    inside = body.replace("\n", "\n        ")
    source = (
        f"def around():\n    lock = 1\n    def forward(x):\n        {inside}\n    return forward\n"
    )
    function = function_of(source, "train.py")["around"]()

    with pytest.raises(NotCompilable) as caught:
        front.read(function)

    error = caught.value
    assert (error.file, error.line, error.function) == ("train.py", line + 3, "forward")
    assert error.construct.startswith(construct)
    assert advice in error.advice
    begin = f"train.py:{line + 3}: cannot compile {construct}"
    assert str(error).startswith(begin)
    assert str(error).endswith(f" in forward: {error.advice}")


@pytest.mark.parametrize(
    "parameters, construct",
    [("*xs", "'*xs'"), ("x, **more", "'**more'"), ("x, out", "an argument 'out'")],
)
def test_arguments_without_a_name_of_their_own_are_refused(parameters, construct) -> None:
    function = function_of(f"def f({parameters}):\n    return 1\n", "args.py")["f"]
    with pytest.raises(NotCompilable, match=re.escape(f"args.py:1: cannot compile {construct} in")):
        front.read(function)


def test_lambdas_coroutines_and_wrapped_functions_are_refused() -> None:
    source = (
        "import functools\n"
        "f = lambda x: x\n"
        "async def g(x): return x\n"
        "@functools.wraps(f)\n"
        "def h(x): return x\n"
    )
    found = function_of(source, "kinds.py")
    for name, line, construct in (
        ("f", 2, "'lambda' in lambda"),
        ("g", 3, "'async def' in g"),
        ("h", 4, "a function under another decorator"),
    ):
        with pytest.raises(NotCompilable, match=f"kinds.py:{line}: cannot compile {construct}"):
            front.read(found[name])


def test_what_has_no_source_is_refused() -> None:
    found: dict = {}
    exec(compile("def f(x): return x", "<nowhere>", "exec"), found)
    with pytest.raises(NotCompilable, match="<nowhere>: cannot compile code without source in f"):
        front.read(found["f"])


def test_a_file_that_changed_is_refused() -> None:
    function = function_of("def f(x):\n    return x\n", "moved.py")["f"]
    function_of("\n\ndef f(x):\n    return x\n", "moved.py")
    with pytest.raises(NotCompilable, match="its file has changed since it was loaded"):
        front.read(function)
    linecache.cache["moved.py"] = (4, None, ["def f(\n"], "moved.py")
    with pytest.raises(NotCompilable, match="its file has changed since it was loaded"):
        front.read(function)


@pytest.mark.parametrize("thing", [len, 3, int, None, function_of])
def test_what_is_no_function_of_python_is_a_type_error(thing) -> None:
    if thing is function_of:
        thing = classmethod(function_of)
    with pytest.raises(TypeError, match="compile takes a function"):
        front.read(thing)


def test_a_refusal_is_an_error_of_tlmem_and_can_be_sent_to_another_process() -> None:
    import pickle

    error = NotCompilable("'with'", "f", "do otherwise", "a.py", 3)
    assert isinstance(error, TlmemError)
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.line, copy.advice) == (str(error), 3, "do otherwise")
