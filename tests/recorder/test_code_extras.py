"""The data that programs keep on code objects (PEP 523's extra slots) are theirs alone.

A profiler or a debugger asks for an index, gives a free function with it, and counts on being
called for its own data only. The recorder needs to know when code objects die as well; a program
must not notice how.
"""

import sys
import textwrap
from pathlib import Path

import pytest
from support.programs import assert_same, plain, recorded

import tlmem
from tlmem.events import Kind

EXTRAS = """
import ctypes, sys
import numpy as np

new = sys.version_info >= (3, 12)
api = ctypes.pythonapi
request = getattr(api, "PyUnstable_Eval_RequestCodeExtraIndex" if new
                  else "_PyEval_RequestCodeExtraIndex")
set_extra = getattr(api, "PyUnstable_Code_SetExtra" if new else "_PyCode_SetExtra")
get_extra = getattr(api, "PyUnstable_Code_GetExtra" if new else "_PyCode_GetExtra")
free_type = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
request.argtypes, request.restype = (free_type,), ctypes.c_ssize_t
set_extra.argtypes = ctypes.py_object, ctypes.c_ssize_t, ctypes.c_void_p
get_extra.argtypes = ctypes.py_object, ctypes.c_ssize_t, ctypes.POINTER(ctypes.c_void_p)

def function(number):
    names = {"np": np}
    exec(f"def f{number}(): return np.empty({number + 1000})", names)
    return names.pop(f"f{number}")

def extra_of(code):
    value = ctypes.c_void_p(7)
    return get_extra(code, index, value), value.value
"""
PROGRAMS = {
    "at_run_time": """
        early = [function(n) for n in range(50)]
        for each in early:
            each()
        freed = []
        free = free_type(freed.append)
        index = request(free)
        functions = early + [function(n) for n in range(50, 100)]
        kept = [each() for each in functions]
        print("index", index, {extra_of(each.__code__) for each in functions})
        print("sizes", {each.__code__.__sizeof__() for each in functions})
        for number in range(0, 100, 10):
            print(set_extra(functions[number].__code__, index, number + 1), end=" ")
        print(extra_of(functions[90].__code__))
        del each, early
        functions.clear()
        print("freed", freed)
        """,
    "at_exit": """
        def run():
            return np.empty(1000)
        before = run()
        free = free_type(lambda pointer: print("freed", pointer))
        index = request(free)
        def late():
            return np.empty(1000)
        after = late()
        print(index)
        """,
    "two_users": """
        calls = []
        frees = [free_type(lambda pointer, user=user: calls.append((user, pointer)))
                 for user in range(2)]
        first = request(frees[0])
        a = function(1); a()
        set_extra(a.__code__, first, 5)
        second = request(frees[1])
        b = function(2); b()
        set_extra(b.__code__, second, 6)
        c = function(3); c()
        print(first, second)
        del c, b, a
        print(calls)
        """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_extra_slots_are_the_programs_own(name: str, tmp_path: Path) -> None:
    """A free function hears of what its owner stored, at run time and at exit, and of no more."""
    program = EXTRAS + textwrap.dedent(PROGRAMS[name])
    (tmp_path / "program.py").write_text(program, encoding="utf-8")

    assert_same(["program.py"], tmp_path)


REUSED = """
import gc
import numpy as np

def make(number):
    names = {"np": np}
    code = f"def reused{number}(): return np.empty({5000 + number}, np.uint8)"
    exec("\\n" * number + code, names)
    return names.pop(f"reused{number}")

kept, addresses = [], []
for number in range(200):
    function = make(number)
    addresses.append(id(function.__code__))
    kept.append(function())
    del function
print(len(addresses) - len(set(addresses)) > 50)
"""


def test_an_address_that_is_reused_means_the_new_code(tmp_path: Path) -> None:
    """Each array has the line of the function that made it, though most lay at one address."""
    (tmp_path / "program.py").write_text(REUSED, encoding="utf-8")

    result = recorded(["program.py"], tmp_path)

    assert (result.returncode, result.stdout) == (0, b"True\n"), result.stderr
    recording = tlmem.read(next(tmp_path.glob("*.tlm")))
    events, functions = recording.events, recording.sites["function"]
    births = events[(events["kind"] == Kind.ALLOC) & events["arg"].between(5000, 5199)]
    met = dict(zip(births["arg"], functions.reindex(births["site"]), strict=True))
    assert met == {5000 + number: f"reused{number}" for number in range(200)}


def test_cpythons_own_test_of_code_objects_passes(tmp_path: Path) -> None:
    """It ends without its free function alive, so a stray call at exit is a segmentation fault."""
    pytest.importorskip("test.test_code", reason="this Python has no test package")
    words = ["-m", "test", "test_code"]

    assert plain(words, tmp_path).returncode == 0
    result = recorded(words, tmp_path)

    assert result.returncode == 0, (sys.version, result.stdout[-2000:], result.stderr[-2000:])
