"""A snapshot of holders changes nothing of the program: what it observes of itself stays the same.

Each program calls ``tlmem.snapshot()``, which does nothing without a recording, and prints what it
sees of its objects around the call; plain and recorded output are compared bytewise.
"""

import textwrap
from pathlib import Path

import pytest
from support.programs import assert_same

PROGRAMS = {
    "objects_and_counts": """
        import gc, sys
        import numpy as np
        import tlmem
        class Plain: pass
        class Slotted: __slots__ = ("grid", "next")
        plain, slotted = Plain(), Slotted()
        plain.grid, plain.other = np.ones(100), [np.ones(10) for _ in range(50)]
        slotted.grid = plain.grid[3:]
        def closure(value=plain.other):
            return lambda: plain
        kept = {"f": closure(), "c": closure, "m": memoryview(plain.grid), "e": ValueError("x")}
        watched = [plain, slotted, plain.grid, plain.other, Plain, closure, kept, "grid"]
        def state():
            counts = [sys.getrefcount(thing) for thing in watched]
            return counts, [len(gc.get_referents(thing)) for thing in watched]
        gc.disable()
        def now():
            return gc.get_count()[0], sys.getallocatedblocks(), len(gc.get_objects())
        def change(call):
            first = now()
            call()
            return [b - a for a, b in zip(first, now())]
        for _ in range(20):
            change(tlmem.snapshot), change(gc.isenabled), state()
        before = state()
        print(change(tlmem.snapshot) == change(gc.isenabled))
        print(before == state(), before[0][:5], before[1])
        print(sys.getsizeof(plain), len(gc.get_referents(plain)), hash("grid") == hash("gr" "id"))
        """,
    "instances_without_dicts": """
        import gc
        import numpy as np
        import tlmem
        class A: pass
        made = []
        for i in range(20):
            a = A()
            a.grid, a.name = np.ones(50), str(i)
            made.append(a)
        tlmem.snapshot()
        print([any(type(x) is dict for x in gc.get_referents(a)) for a in made])
        """,
    "lifetimes": """
        import gc, weakref
        import numpy as np
        import tlmem
        gc.disable()
        class Grid(np.ndarray): pass
        class Node: pass
        def grid(name):
            array = np.zeros(10).view(Grid)
            weakref.finalize(array, print, "gone", name)
            return array
        def node(name):
            a, b = Node(), Node()
            a.other, b.other, a.grid = b, a, grid(name)
        x, y = grid("x"), [grid("y"), grid("z")]
        node("cycle")
        tlmem.snapshot()
        print("del x"); del x
        tlmem.snapshot()
        print("pop"); y.pop(); tlmem.snapshot()
        print("collect", gc.collect() >= 2)
        tlmem.snapshot()
        def work():
            inner = grid("inner")
            tlmem.snapshot()
            print("in work")
        work()
        print("end")
        """,
    "nobody_is_asked": """
        import numpy as np
        import tlmem
        class Loud:
            def __getattribute__(self, name):
                print("asked for", name); return object.__getattribute__(self, name)
            def __len__(self): print("len"); return 1
            def __iter__(self): print("iter"); return iter(())
            def __repr__(self): print("repr"); return "Loud"
            @property
            def grid(self): print("property")
        class Key(str):
            def __eq__(self, other): print("eq"); return str.__eq__(self, other)
            def __hash__(self): return 7
        class Meta(type):
            def __getattribute__(cls, name):
                print("meta", name); return type.__getattribute__(cls, name)
        class Made(metaclass=Meta): pass
        loud = Loud()
        object.__setattr__(loud, "rows", [np.ones(1000)])
        kept = {Key("a"): np.ones(1000), Key("b"): [loud]}
        made = [object.__new__(Made)]
        tlmem.snapshot()
        print("end")
        """,
    "exceptions_on_their_way": """
        import sys
        import numpy as np
        import tlmem
        class Closing:
            def __del__(self):
                tlmem.snapshot()
                print("closed", sys.exc_info()[0])
        def f():
            closing, grid = Closing(), np.ones(1000)
            raise KeyError("f")
        try:
            f()
        except KeyError as error:
            tlmem.snapshot()
            print(repr(error), sys.exc_info()[0])
            del error
        try:
            try:
                f()
            finally:
                tlmem.snapshot()
        except KeyError:
            pass
        def steps():
            grid = np.ones(100)
            for i in range(3):
                tlmem.snapshot()
                yield i
        print(list(steps()), sum(i for i in steps()))
        raise SystemExit(5)
        """,
    "garbage_and_finalisers": """
        import gc
        import numpy as np
        import tlmem
        gc.set_threshold(20, 2, 2)
        class Node:
            def __init__(self): self.me, self.grid = self, np.ones(10)
            def __del__(self): tlmem.snapshot(); died.append(1)
        died = []
        gc.callbacks.append(lambda phase, info: tlmem.snapshot())
        for _ in range(200): Node()
        gc.callbacks.clear()
        gc.collect()
        print(len(died))
        """,
    "threads": """
        import threading
        import numpy as np
        import tlmem
        results = []
        def work(n):
            rows = [np.full(100, n) for _ in range(20)]
            for _ in range(5):
                tlmem.snapshot()
                rows = [row + 1 for row in rows]
            results.append(int(sum(row.sum() for row in rows)))
        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(sorted(results), threading.active_count())
        """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_snapshot_leaves_everything_as_it_was(name: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(textwrap.dedent(PROGRAMS[name]), encoding="utf-8")

    assert_same(["program.py"], tmp_path)
