"""Ways of starting a program, and what its first module looks like from inside."""

import sys
from pathlib import Path

import pytest
from support.hostile import Program, assert_undisturbed, cases

import tlmem

LOOK = """
import sys, numpy as np
print(sys.argv, sys.flags, __name__, __debug__, np.ones(3).sum(), len(sys.warnoptions), sys.orig_argv[1:])
"""
PATH = ":".join([str(Path(tlmem.__file__).parents[1]), *filter(None, sys.path)])

PROGRAMS: dict[str, str | Program] = {
    **{
        f"with {' '.join(flags)}": Program(LOOK, flags=flags)
        for flags in (
            ("-I",),
            ("-E",),
            ("-s",),
            ("-O",),
            ("-OO",),
            ("-B",),
            ("-u",),
            ("-P",),
            ("-b",),
            ("-bb",),
            ("-d",),
            ("-W", "error::DeprecationWarning"),
            ("-X", "dev"),
            ("-X", "utf8=0"),
            ("-X", "int_max_str_digits=1000"),
            ("-X", "tracemalloc=3"),
            ("-X", "no_debug_ranges"),
            ("-X", "faulthandler"),
            ("-X", "pycache_prefix=cache"),
        )
    },
    "without site": Program(
        "import sys; print(sys.flags.no_site, 'site' in sys.modules)",
        flags=("-S",),
        environment={"PYTHONPATH": PATH},
    ),
    "with optimisation and assertions": Program("assert False; print('end')", flags=("-O",)),
    "with a hash seed": Program("print(hash('a'))", environment={"PYTHONHASHSEED": "5"}),
    "with an allocator for debugging": Program(LOOK, environment={"PYTHONMALLOC": "debug"}),
    "with the allocator of C": Program(LOOK, environment={"PYTHONMALLOC": "malloc"}),
    "with another encoding": Program(
        "import sys; print(sys.stdout.encoding); print('é')",
        environment={"PYTHONIOENCODING": "latin-1:replace"},
    ),
    "with the locale of C": Program(
        "import sys; print(sys.getfilesystemencoding(), ascii('é'))",
        environment={"LC_ALL": "C", "LANG": "C"},
    ),
    "with a breakpoint hook": Program(
        "breakpoint()\nprint('end')\n", environment={"PYTHONBREAKPOINT": "builtins.print"}
    ),
    "with PYTHONINSPECT and no terminal": Program(
        "import os; os.environ['PYTHONINSPECT'] = '1'; print('end')"
    ),
    "with -i and commands on standard input": Program(
        "value = 42",
        flags=("-i",),
        stdin=b"print(value)\nimport sys\nprint(sys.argv)\n",
        redirect="2>/dev/null",  # the prompts are the same, but for the banner's way to stderr
    ),
    "from standard input": Program(
        words=("-", "a"), stdin=b"import sys; print(sys.argv, __file__)"
    ),
    "from standard input with an exception": Program(words=("-",), stdin=b"def f(): 1 / 0\nf()\n"),
    "from standard input with an inspected source": Program(
        words=("-",),
        stdin=b"import inspect\ndef f(): pass\ntry: print(inspect.getsource(f))\nexcept OSError as e: print(e)\n",
    ),
    "as a piece of code": Program(words=("-c", "import sys; print(sys.argv, __name__)", "-c", "x")),
    "as a piece of code with an exception": Program(words=("-c", "def f():\n  1 / 0\nf()")),
    "as a piece of code whose source is inspected": Program(
        words=(
            "-c",
            "import inspect\ndef f(): pass\ntry: print(inspect.getsource(f))\n"
            "except OSError as e: print(e)\n",
        )
    ),
    "as a package": Program(
        words=("-m", "package", "x"),
        files={
            "package/__init__.py": "",
            "package/__main__.py": "import sys\nfrom . import other\nprint(__package__, __spec__.name, sys.argv[1:])\n",
            "package/other.py": "print(__name__)",
        },
    ),
    "as a module of a namespace": Program(
        words=("-m", "space.module"), files={"space/module.py": "print(__name__, __spec__.parent)"}
    ),
    "as a directory": Program(
        words=("folder", "x"),
        files={
            "folder/__main__.py": "import beside, sys; print(sys.argv, sys.path[0])",
            "folder/beside.py": "",
        },
    ),
    "as a module that is not there": Program(words=("-m", "absent.module"), state=""),
    "as a module whose parent fails": Program(
        words=("-m", "package.module"),
        files={"package/__init__.py": "1 / 0", "package/module.py": ""},
        state="",
    ),
    "from a file with a byte order mark": Program("\ufeffprint('end')"),
    "from a file with another encoding": Program("# coding: latin-1\nprint(ascii('\\xe9'))\n"),
    "from a file without an end of line": Program("print('end')"),
    "from a file of carriage returns": Program("print(1)\r\nprint(2)\r\n"),
    "from an empty file": Program(""),
    "from a file with a line of a megabyte": Program(
        "x = '" + "a" * (1 << 20) + "'\nprint(len(x))\n"
    ),
    "from a file named like an option": Program(
        words=("./-q.py",), files={"-q.py": "import sys; print(sys.argv)"}
    ),
    "from a file without a suffix": Program(
        words=("run",), files={"run": "import sys; print(sys.argv, __file__)"}
    ),
    "from a folder with modules of our names": Program(
        "import argparse, json; print(argparse.mine, json.mine)",
        files={"argparse.py": "mine = 1", "json.py": "mine = 2"},
    ),
    "from a folder with a module named numpy": Program(
        "import numpy; print(numpy.mine)", files={"numpy.py": "mine = 1"}
    ),
    "from a folder with a module named tlmem": Program(
        "import sys; print('end')", files={"cffi.py": "1 / 0", "pandas.py": "1 / 0"}, spoken=True
    ),
    "its own source is inspected": """
        import inspect, sys
        def f():
            return 1
        print(inspect.getsource(f))
        print(inspect.getsourcefile(f) == __file__, inspect.getmodule(f) is sys.modules["__main__"])
        """,
    "its own classes are pickled": """
        import copy, pickle
        class Thing:
            def __eq__(self, other): return type(self) is type(other)
        print(pickle.loads(pickle.dumps(Thing())) == Thing(), Thing.__module__, pickle.dumps(Thing)[:40])
        """,
    "it imports itself": Program(
        "import sys\nprint(__name__)\nif __name__ == '__main__':\n    import program\n    print(program is sys.modules['__main__'])\n"
    ),
    "it runs itself by runpy": """
        import runpy, sys
        if len(sys.argv) == 1:
            sys.argv.append("again")
            runpy.run_path(__file__, run_name="__main__")
        print(sys.argv[1:], __name__)
        """,
    "it runs another by exec": Program(
        "exec(compile(open('other').read(), 'other', 'exec'))",
        files={"other": "def f(): 1 / 0\nf()\n"},
    ),
    "doctests run": """
        '''
        >>> 1 + 1
        2
        >>> 1 / 0
        Traceback (most recent call last):
        ZeroDivisionError: division by zero
        '''
        import doctest
        print(doctest.testmod())
        """,
    "unit tests run": """
        import sys, unittest
        class T(unittest.TestCase):
            def test_a(self): self.assertEqual(1, 1)
            def test_b(self): self.fail("b")
        unittest.main(verbosity=0, exit=True, argv=["x"], testRunner=unittest.TextTestRunner(stream=open("/dev/null", "w")))
        """,
    "a debugger is fed commands": Program(
        "import pdb\nx = 1\npdb.set_trace()\nprint('end')\n", stdin=b"where\np x\nup\nc\n"
    ),
    "a profiler is run": """
        import cProfile, pstats, io
        profile = cProfile.Profile()
        def f(): return sum(range(10))
        profile.enable(); f(); profile.disable()
        print(sorted(key[2] for key in pstats.Stats(profile).stats))
        """,
    "a profiler is left on": """
        import cProfile
        profile = cProfile.Profile(); profile.enable()
        import atexit
        def stop():
            profile.disable()
            import importlib.util, pstats
            package = importlib.util.find_spec("tlmem").submodule_search_locations[0]
            print(sorted(k[2] for k in pstats.Stats(profile).stats if k[0].startswith(package)))
        atexit.register(stop)
        """,
    "an interactive console is run": Program(
        "import code; code.interact(banner='', exitmsg='')",
        stdin=b"1 + 1\nimport sys\n",
        redirect="2>/dev/null",
    ),
    "the annotations of main": "x: int = 3\nprint(__annotations__)\n",
    "globals at the start": "print(sorted(globals()), __builtins__, __doc__, __loader__.name)",
    "future statements": "from __future__ import annotations\ndef f(x: undefined): pass\nprint(f.__annotations__)\n",
}


@pytest.mark.parametrize("program", cases(PROGRAMS))
def test_starts(program: Program, tmp_path: Path) -> None:
    assert_undisturbed(program, tmp_path)
