"""A program may watch its interpreter: no hook of its own may see a frame or an event of ours."""

from pathlib import Path

import pytest
from support.hostile import Program, assert_undisturbed, cases

SEEN = """
import os, sys
def see(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())
def name(code):
    return os.path.basename(code.co_filename).replace("test_", "") + ":" + code.co_name
def called(frame, event, argument):
    return event, name(frame.f_code), getattr(argument, "__name__", "")
def profile(*arguments):
    see(*called(*arguments))
def trace(frame, event, argument):
    see(event, name(frame.f_code), frame.f_lineno)
    return trace
"""
WORK = """
import numpy as np
def work():
    return [np.ones(10) for _ in range(3)]
"""

PROGRAMS: dict[str, str | Program] = {
    "a trace function is left on": Program(
        SEEN
        + """
sys.settrace(trace)
def f():
    return 1
f()
""",
        spoken=True,
    ),
    "a trace function is left on in a program that fails": SEEN
    + """
sys.settrace(trace)
{}["missing"]
""",
    "a trace function is left on in a program that exits": SEEN
    + """
sys.settrace(trace)
sys.exit(4)
""",
    "a profile function is left on": Program(
        SEEN
        + """
sys.setprofile(profile)
def f():
    return len("a")
f()
""",
        spoken=True,
    ),
    "a profile function is left on in a program that fails": SEEN
    + """
sys.setprofile(profile)
def f():
    return {}["missing"]
f()
""",
    "a profile function is left on in a program that exits": SEEN
    + """
sys.setprofile(profile)
sys.exit("text")
""",
    "a profile function is left on in threads": SEEN
    + """
import threading
def profile(frame, event, argument):
    if "threading" not in frame.f_code.co_filename:
        see(event, name(frame.f_code), getattr(argument, "__name__", ""))
threading.setprofile(profile)
def f(): return 1
for _ in range(3):
    thread = threading.Thread(target=f); thread.start(); thread.join()
""",
    "a trace function sees numpy imported": SEEN
    + """
calls = []
def trace(frame, event, argument):
    calls.append(name(frame.f_code))
sys.settrace(trace)
import numpy.linalg
sys.settrace(None)
see([each for each in calls if "tlmem" in each])
see([a for a, b in zip(calls, calls[1:]) if a == b and a.endswith(":exec_module")])
""",
    "a profile function sees an extension imported": SEEN
    + """
calls = []
def profile(*arguments):
    calls.append(called(*arguments))
import _csv, _heapq
sys.setprofile(profile)
import _ctypes_test
sys.setprofile(None)
for call in calls: see(*call)
""".replace("_ctypes_test", "_queue"),
    "a trace function sees a fork": SEEN
    + """
seen = []
def trace(frame, event, argument):
    seen.append((event, name(frame.f_code)))
    return trace
sys.settrace(trace)
if (pid := os.fork()) == 0:
    os._exit(0)
os.waitpid(pid, 0)
sys.settrace(None)
for each in seen: see(*each)
""",
    "a profile function sees a fork": SEEN
    + """
seen = []
def profile(*arguments):
    seen.append(called(*arguments))
sys.setprofile(profile)
if (pid := os.fork()) == 0:
    os._exit(0)
os.waitpid(pid, 0)
sys.setprofile(None)
for each in seen: see(*each)
""",
    "a profile function sees a program started": SEEN
    + """
import subprocess
calls = []
def profile(*arguments):
    calls.append(called(*arguments))
sys.setprofile(profile)
subprocess.run([sys.executable, "-S", "-c", "pass"])
sys.setprofile(None)
for call in calls: see(*call)
""",
    "a trace function that raises is left on": SEEN
    + """
def trace(frame, event, argument):
    raise RuntimeError("in trace " + name(frame.f_code))
sys.settrace(trace)
""",
    "a profile function that raises is left on": SEEN
    + """
def profile(frame, event, argument):
    raise RuntimeError("in profile " + name(frame.f_code))
sys.setprofile(profile)
""",
    "monitoring is left on": SEEN
    + """
if sys.version_info >= (3, 12):
    m = sys.monitoring
    m.use_tool_id(3, "mine")
    m.register_callback(3, m.events.PY_START, lambda code, _: see("start", name(code)))
    m.register_callback(3, m.events.PY_RETURN, lambda code, *_: see("return", name(code)))
    m.set_events(3, m.events.PY_START | m.events.PY_RETURN)
def f(): pass
f()
""",
    "an audit hook that reports is left on": Program(
        SEEN
        + """
sys.addaudithook(lambda event, arguments: see(event))
class Empty: pass
""",
        spoken=True,
    ),
    "an audit hook that raises is left on": Program(
        SEEN
        + """
on = False
def hook(event, arguments):
    if on:
        see(event)
        raise RuntimeError(event)
sys.addaudithook(hook)
on = True
""",
        spoken=True,
    ),
    "an audit hook sees numpy imported": SEEN
    + """
events = []
sys.addaudithook(lambda event, arguments: events.append(event) if watching else None)
watching = True
import numpy
watching = False
see(sorted({each for each in events if each.split(".")[0] in ("code", "ctypes", "mmap", "signal")}))
""",
    "an audit hook sees a fork": SEEN
    + """
seen, watching = [], True
sys.addaudithook(lambda event, arguments: seen.append(event) if watching else None)
if (pid := os.fork()) == 0:
    os._exit(0)
os.waitpid(pid, 0)
watching = False
see(*seen)
""",
    "an audit hook sees a program started": SEEN
    + """
import subprocess
watching = True
def hook(event, arguments):
    if watching: see(event, *(arguments[:2] if event.startswith("subprocess") else ()))
sys.addaudithook(hook)
subprocess.run([sys.executable, "-S", "-c", "pass"])
watching = False
""",
    "an audit hook that raises forbids a fork": SEEN
    + """
watching = True
def hook(event, arguments):
    if watching and event == "os.fork": raise PermissionError(event)
sys.addaudithook(hook)
try:
    os.fork()
except PermissionError as error:
    see(error)
watching = False
""",
    "an excepthook that raises": """
        import sys
        def hook(kind, value, trace):
            raise RuntimeError("hook")
        sys.excepthook = hook
        1 / 0
        """,
    "an excepthook that exits": """
        import sys
        def hook(kind, value, trace):
            sys.exit(5)
        sys.excepthook = hook
        1 / 0
        """,
    "an excepthook that is None": "import sys; sys.excepthook = None; 1 / 0",
    "an excepthook that is deleted": "import sys; del sys.excepthook; 1 / 0",
    "an excepthook that is an object": """
        import sys
        class Hook:
            def __call__(self, kind, value, trace):
                import traceback
                print("hook", kind.__name__, value, sys.excepthook is self, sys.last_type.__name__)
                print([f.name for f in traceback.extract_stack()])
                print([f.name for f in traceback.extract_tb(trace)])
        sys.excepthook = Hook()
        1 / 0
        """,
    "an excepthook is watched by a profile function": SEEN
    + """
def hook(*_): see("hook")
sys.excepthook = hook
sys.setprofile(profile)
1 / 0
""",
    "an excepthook raises in one that was replaced meanwhile": """
        import sys
        def first(*_):
            sys.excepthook = second
            raise KeyError("first")
        def second(*_): raise LookupError("second")
        sys.excepthook = first
        1 / 0
        """,
    "the original excepthook is gone": """
        import sys
        sys.__excepthook__ = sys.excepthook = lambda *_: print("mine")
        raise ValueError
        """,
    "an exception whose traceback raises when it is printed": """
        class Odd(Exception):
            def __str__(self): raise RuntimeError("str")
            def __repr__(self): raise RuntimeError("repr")
        raise Odd
        """,
    "an exception whose class forbids a traceback": """
        class Odd(Exception):
            @property
            def __traceback__(self): raise RuntimeError("no traceback")
            def with_traceback(self, trace): raise RuntimeError("no")
        raise Odd("odd")
        """,
    "an exception that cannot be changed": """
        class Odd(Exception):
            def __setattr__(self, name, value): raise RuntimeError("no " + name)
        raise Odd("odd")
        """,
    "an exception with a cycle of causes": """
        a, b = ValueError("a"), ValueError("b")
        a.__cause__, b.__cause__ = b, a
        raise a
        """,
    "an unraisable hook reports everything": SEEN
    + """
sys.unraisablehook = lambda seen: see("unraisable", seen.exc_type.__name__, seen.err_msg)
class Odd:
    def __del__(self): raise KeyError("del")
Odd()
kept = Odd()
import atexit
atexit.register(lambda: 1 / 0)
""",
    "an unraisable hook that raises": """
        import sys
        def hook(_): raise RuntimeError("hook")
        sys.unraisablehook = hook
        class Odd:
            def __del__(self): raise KeyError("del")
        del_now = Odd(); del del_now
        """,
    "a thread's excepthook that raises": """
        import sys, threading
        def hook(_): raise RuntimeError("hook")
        threading.excepthook = hook
        def work(): raise KeyError
        thread = threading.Thread(target=work, name="t"); thread.start(); thread.join()
        """,
    "a displayhook counts": "import sys; sys.displayhook = print; exec(compile('1', 'x', 'single'))",
    "frames are asked for at exit": """
        import atexit, sys, traceback
        def at_exit():
            frame = sys._getframe()
            while frame:
                print(frame.f_code.co_name, frame.f_lineno)
                frame = frame.f_back
            print(len(traceback.extract_stack()))
        atexit.register(at_exit)
        """,
    "frames are asked for in a finalizer": """
        import sys
        class Odd:
            def __del__(self, ask=sys._getframe):
                frame = ask()
                while frame:
                    print(frame.f_code.co_name)
                    frame = frame.f_back
        kept = Odd()
        """,
    "frames of every thread are asked for": """
        import sys, threading
        stop = threading.Event()
        thread = threading.Thread(target=stop.wait); thread.start()
        print(len(sys._current_frames()), len(sys._current_exceptions()))
        for frame in sys._current_frames().values():
            while frame.f_back: frame = frame.f_back
            print(frame.f_code.co_name)
        stop.set()
        """,
    "frames are dumped by faulthandler": """
        import faulthandler, sys
        faulthandler.dump_traceback(sys.stdout.fileno(), all_threads=False)
        """,
    "frames are dumped by faulthandler at exit": """
        import atexit, faulthandler, sys
        atexit.register(lambda: faulthandler.dump_traceback(1, all_threads=False))
        """,
    "frames are asked for in a handler of a signal at the end": """
        import signal, sys, traceback
        def handler(number, frame):
            print([f.name for f in traceback.extract_stack(frame)])
        signal.signal(signal.SIGUSR1, handler)
        import os
        os.kill(os.getpid(), signal.SIGUSR1)
        """,
    "a traceback is printed in another process": """
        import os, sys, traceback
        if (pid := os.fork()) == 0:
            traceback.print_stack(file=sys.stdout)
            sys.stdout.flush()
            1 / 0
        print(os.waitpid(pid, 0)[1])
        """,
    "the recursion limit is low": """
        import sys
        sys.setrecursionlimit(20)
        print("end")
        """,
    "the recursion limit is low in a program that fails": """
        import sys
        sys.setrecursionlimit(30)
        def f(): f()
        f()
        """,
    "the recursion limit is low and a process is forked": """
        import os, sys
        def at(depth):
            if depth: return at(depth - 1)
            if (pid := os.fork()) == 0: os._exit(0)
            return os.waitpid(pid, 0)[1]
        sys.setrecursionlimit(50)
        for depth in range(20, 60):
            try:
                print(depth, at(depth))
            except RecursionError:
                print(depth, "too deep")
                break
        """,
    "the recursion limit is reached with arrays": WORK
    + """
import sys
def deeper(n):
    try:
        return deeper(n + 1)
    except RecursionError:
        return n, len(work())
print(deeper(0)[0])
""".replace("n, len(work())", "n,"),
    "an interval of switching is tiny": """
        import sys, threading
        sys.setswitchinterval(1e-6)
        import numpy as np
        def work():
            for _ in range(300): np.ones(100)
        threads = [threading.Thread(target=work) for _ in range(8)]
        for t in threads: t.start()
        for t in threads: t.join()
        print(sys.getswitchinterval() < 1e-5)
        """,
    "garbage collection is watched": """
        import gc
        gc.collect(); gc.disable()
        gc.callbacks.append(lambda phase, info: print(phase, info["generation"]))
        import numpy as np
        class Cycle: pass
        a = Cycle(); a.me = a; a.array = np.ones(10); del a
        print(gc.collect(0) >= 1)
        """,
    "garbage collection is watched to the end": """
        import gc
        gc.collect()
        import os
        gc.callbacks.append(lambda phase, info: os.write(1, b"%s %d\\n" % (phase.encode(), info["generation"])))
        """,
    "garbage is kept": """
        import gc
        gc.collect()
        gc.set_debug(gc.DEBUG_SAVEALL)
        class Cycle: pass
        a = Cycle(); a.me = a; del a
        gc.collect()
        print(len(gc.garbage))
        gc.set_debug(0)
        """,
    "garbage is frozen": "import gc; gc.disable(); gc.freeze(); print(gc.isenabled())",
    "tracemalloc counts": """
        import tracemalloc
        tracemalloc.start(5)
        kept = [bytes(1000) for _ in range(100)]
        import numpy as np
        arrays = [np.ones(1000) for _ in range(10)]
        current, peak = tracemalloc.get_traced_memory()
        top = tracemalloc.take_snapshot().statistics("filename")
        print(any("program.py" in str(s) for s in top), current > 100_000)
        import importlib.util
        package = importlib.util.find_spec("tlmem").submodule_search_locations[0]
        print([s for s in top if s.traceback[0].filename.startswith(package)])
        tracemalloc.stop()
        """,
    "refcounts are watched": """
        import sys
        import numpy as np
        a = np.ones(10)
        f = lambda: np.ones(3)
        f()
        print(sys.getrefcount(a), sys.getrefcount(f), sys.getrefcount(f.__code__), sys.getrefcount(np.ones))
        import os
        print(sys.getrefcount(os.fork))
        """,
    "faulthandler is on": Program(flags=("-X", "faulthandler"), source="print('end')"),
    "faulthandler dumps later": """
        import faulthandler, time
        faulthandler.dump_traceback_later(600)
        import numpy as np; kept = np.ones(10)
        faulthandler.cancel_dump_traceback_later()
        """,
}


@pytest.mark.parametrize("program", cases(PROGRAMS))
def test_watched(program: Program, tmp_path: Path) -> None:
    assert_undisturbed(program, tmp_path)
