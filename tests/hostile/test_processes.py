"""Programs that make processes in every way, replace themselves, and leave in the middle of it."""

from pathlib import Path

import pytest
from support.hostile import Program, assert_undisturbed, cases

POOL = """
import multiprocessing, sys
import numpy as np
def work(n):
    return float(np.ones(n).sum())
if __name__ == "__main__":
    multiprocessing.set_start_method("{method}")
    with multiprocessing.Pool(2) as pool:
        print(pool.map(work, range(5)))
    process = multiprocessing.Process(target=sys.exit, args=(3,))
    process.start(); process.join()
    print(process.exitcode)
"""

PROGRAMS: dict[str, str | Program] = {
    "forks in a loop": """
        import os
        import numpy as np
        for i in range(25):
            if (pid := os.fork()) == 0:
                np.ones(10)
                os._exit(i)
            assert os.waitpid(pid, 0)[1] == i << 8
        print("end")
        """,
    "children fork children": """
        import os, sys
        for level in range(5):
            if (pid := os.fork()) != 0:
                status = os.waitpid(pid, 0)[1]
                print("level", level, os.waitstatus_to_exitcode(status))
                sys.stdout.flush()
                sys.exit(level)
        """,
    "a child runs to the end of the program": """
        import atexit, os, sys
        atexit.register(lambda: (print("handler", pid == 0), sys.stdout.flush()))
        pid = os.fork()
        if pid: os.waitpid(pid, 0)
        print("end", pid == 0)
        """,
    "a child ends with an exception": """
        import os
        pid = os.fork()
        if pid == 0: {}["missing"]
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        """,
    "a child ends with an interrupt": """
        import os
        pid = os.fork()
        if pid == 0: raise KeyboardInterrupt
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        """,
    "a child aborts": """
        import os
        pid = os.fork()
        if pid == 0: os.abort()
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        """,
    "a child is killed": """
        import os, signal, time
        pid = os.fork()
        if pid == 0:
            while True: time.sleep(1)
        os.kill(pid, signal.SIGKILL)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        """,
    "the parent leaves at once": Program(
        """
        import os
        r, w = os.pipe()
        if os.fork(): os._exit(4)
        """,
        state="open",
    ),
    "a daemon is made by forking twice": """
        import os, sys
        import numpy as np
        r, w = os.pipe()
        if (pid := os.fork()) == 0:
            os.setsid()
            if os.fork() == 0:
                os.chdir("/"); os.umask(0)
                null = os.open(os.devnull, os.O_RDWR)
                for number in range(3): os.dup2(null, number)
                os.closerange(3, w); os.closerange(w + 1, 64)
                os.write(w, b"%d" % np.ones(7).sum())
                os._exit(0)
            os._exit(0)
        os.close(w); os.waitpid(pid, 0)
        print(os.read(r, 100))
        """,
    "a thread forks": """
        import os, threading
        def work():
            if (pid := os.fork()) == 0: os._exit(3)
            print(os.waitpid(pid, 0)[1])
        thread = threading.Thread(target=work); thread.start(); thread.join()
        """,
    "a thread of a child runs to the end": """
        import os, threading
        def work():
            if os.fork() == 0:
                os.write(1, b"child\\n")
                os._exit(0)
            os.wait()
        for _ in range(3):
            thread = threading.Thread(target=work); thread.start(); thread.join()
        print("end")
        """,
    "threads fork at the same time": """
        import os, threading, warnings
        warnings.simplefilter("ignore")
        codes = []
        def work(n):
            for _ in range(3):
                if (pid := os.fork()) == 0: os._exit(n)
                codes.append(os.waitpid(pid, 0)[1] >> 8)
        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for t in threads: t.start()
        for t in threads: t.join()
        print(sorted(codes))
        """,
    "a fork in a handler of a signal": """
        import os, signal
        def handler(*_):
            if (pid := os.fork()) == 0: os._exit(3)
            print(os.waitpid(pid, 0)[1])
        signal.signal(signal.SIGUSR1, handler)
        os.kill(os.getpid(), signal.SIGUSR1)
        print("end")
        """,
    "a fork in a finalizer": """
        import os
        class Odd:
            def __del__(self):
                if (pid := os.fork()) == 0: os._exit(3)
                print(os.waitpid(pid, 0)[1])
        odd = Odd(); del odd
        print("end")
        """,
    "a fork in an exit handler": """
        import atexit, os
        def at_exit():
            if (pid := os.fork()) == 0: os._exit(3)
            print(os.waitpid(pid, 0)[1])
        atexit.register(at_exit)
        """,
    "a fork in an exit handler whose child goes on": """
        import atexit, os, sys
        atexit.register(lambda: (print("last", pid == 0), sys.stdout.flush()))
        def at_exit():
            global pid
            sys.stdout.flush()
            pid = os.fork()
            if pid: os.waitpid(pid, 0)
        atexit.register(at_exit)
        """,
    "handlers of a fork are called in their order": """
        import os
        for n in range(2):
            os.register_at_fork(
                before=lambda n=n: os.write(1, b"before %d\\n" % n),
                after_in_parent=lambda n=n: os.write(1, b"parent %d\\n" % n),
                after_in_child=lambda n=n: in_child.append(n))
        in_child = []
        if (pid := os.fork()) == 0: os._exit(in_child == [0, 1])
        print(os.waitpid(pid, 0)[1])
        """,
    "handlers of a fork raise": """
        import os
        def broken(): raise RuntimeError("handler")
        os.register_at_fork(before=broken, after_in_parent=broken)
        if (pid := os.fork()) == 0: os._exit(0)
        os.waitpid(pid, 0)
        """,
    "handlers of a fork make arrays": """
        import os
        import numpy as np
        kept = []
        for name in ("before", "after_in_parent", "after_in_child"):
            os.register_at_fork(**{name: lambda: kept.append(np.ones(10))})
        if (pid := os.fork()) == 0: os._exit(len(kept))
        print(os.waitpid(pid, 0)[1] >> 8, len(kept))
        """,
    "a fork fails": """
        import os, resource
        if os.getuid() == 0: os.setuid(65534)
        resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
        try:
            pid = os.fork()
            if pid == 0: os._exit(0)
            print("forked")
        except OSError as error:
            print(error)
        import numpy as np; kept = np.ones(10)
        """,
    "a fork deep in a recursion": """
        import os, sys
        def at(depth):
            if depth: return at(depth - 1)
            if (pid := os.fork()) == 0: os._exit(7)
            return os.waitpid(pid, 0)[1] >> 8
        results = set()
        for depth in range(sys.getrecursionlimit() - 12, sys.getrecursionlimit() + 2):
            try: results.add(at(depth))
            except RecursionError: results.add("deep")
        print(sorted(map(str, results)))
        """,
    "a forked pseudo-terminal": """
        import os, pty
        pid, master = pty.fork()
        if pid == 0:
            print("in a terminal", os.isatty(1), flush=True)
            os._exit(2)
        print(os.read(master, 100), os.waitpid(pid, 0)[1])
        """,
    "programs are started": """
        import os, subprocess, sys
        print(os.system("exit 3") >> 8)
        print(os.popen("echo popen").read())
        print(subprocess.check_output(["echo", "a"]), subprocess.getoutput("echo b"))
        print(os.waitstatus_to_exitcode(os.waitpid(os.posix_spawn("/bin/sh", ["sh", "-c", "exit 5"], os.environ), 0)[1]))
        print(os.spawnlp(os.P_WAIT, "sh", "sh", "-c", "exit 6"))
        """,
    "programs are started with odd arguments": """
        import subprocess, sys
        class Word(str): pass
        for words in (["echo", "-c"], ("echo", "-c", "x"), [b"echo", b"-c"], [Word("echo"), Word("-c")],
                      ["echo", "-c", "from multiprocessing.spawn import nothing"]):
            print(subprocess.run(words, capture_output=True).stdout)
        for words in ([], [None], ["-c"], ["a\\0b"], 7):
            try: subprocess.run(words)
            except Exception as error: print(type(error).__name__, error)
        """,
    "another Python is started": """
        import subprocess, sys
        code = "import sys; print(sys.argv, [n for n in sys.modules if 'tlmem' in n])"
        print(subprocess.run([sys.executable, "-c", code, "-c"], capture_output=True, text=True).stdout)
        print(subprocess.run([sys.executable, "-"], input=code, capture_output=True, text=True).stdout)
        """,
    "it replaces itself once": Program(
        """
        import os, sys
        if "again" not in sys.argv:
            os.execv(sys.executable, [sys.executable, *sys.argv, "again"])
        print("end", sys.argv)
        """,
        state="open",
    ),
    "it replaces itself by another program": Program(
        "import os; os.execlp('echo', 'echo', 'other')", state="open"
    ),
    "it cannot replace itself": """
        import os
        try: os.execv("/absent", ["absent"])
        except OSError as error: print(error)
        """,
    "a child replaces itself": """
        import os
        if (pid := os.fork()) == 0: os.execlp("sh", "sh", "-c", "exit 9")
        print(os.waitpid(pid, 0)[1] >> 8)
        """,
    "a pool of forked processes": POOL.format(method="fork"),
    "a pool of spawned processes": POOL.format(method="spawn"),
    "a pool of a fork server's processes": Program(POOL.format(method="forkserver"), long=True),
    "a pool of futures": Program(
        """
        from concurrent.futures import ProcessPoolExecutor
        def square(n): return n * n
        if __name__ == "__main__":
            with ProcessPoolExecutor(2) as pool:
                print(list(pool.map(square, range(5))))
        """
    ),
    "a worker ends badly": """
        import os
        from concurrent.futures import ProcessPoolExecutor
        from concurrent.futures.process import BrokenProcessPool
        def leave(): os._exit(3)
        if __name__ == "__main__":
            with ProcessPoolExecutor(1) as pool:
                try: pool.submit(leave).result()
                except BrokenProcessPool as error: print(type(error).__name__)
        """,
    "classes of main are unpickled in a spawned process": """
        import multiprocessing
        class Thing:
            def __init__(self, n): self.n = n
            def __reduce__(self): return Thing, (self.n + 1,)
        def work(thing, queue): queue.put(Thing(thing.n * 10))
        if __name__ == "__main__":
            context = multiprocessing.get_context("spawn")
            queue = context.SimpleQueue()
            process = context.Process(target=work, args=(Thing(1), queue)); process.start()
            print(queue.get().n); process.join()
        """,
    "arrays in shared memory": """
        from multiprocessing import shared_memory
        import os
        import numpy as np
        memory = shared_memory.SharedMemory(create=True, size=8000)
        array = np.ndarray(1000, buffer=memory.buf)
        array[:] = 0
        if (pid := os.fork()) == 0:
            array[:] = 3
            os._exit(0)
        os.waitpid(pid, 0)
        print(array.sum())
        del array
        memory.close(); memory.unlink()
        """,
    "the standard input is shared": Program(
        """
        import os, sys
        if (pid := os.fork()) == 0:
            print(os.read(0, 4)); sys.stdout.flush(); os._exit(0)
        os.waitpid(pid, 0)
        print(os.read(0, 4))
        """,
        stdin=b"one\ntwo\n",
    ),
    "sessions and groups are changed": """
        import os
        if (pid := os.fork()) == 0:
            os.setsid(); os._exit(os.getpid() == os.getsid(0))
        print(os.waitpid(pid, 0)[1] >> 8)
        """,
    "subinterpreters run code": """
        try:
            import _xxsubinterpreters as interpreters
        except ImportError:
            import _interpreters as interpreters
        one = interpreters.create()
        interpreters.run_string(one, "import os; os.write(1, b'inside')")
        interpreters.destroy(one)
        print(" end")
        """,
    "a subinterpreter is left alive": """
        try:
            import _xxsubinterpreters as interpreters
        except ImportError:
            import _interpreters as interpreters
        one = interpreters.create()
        interpreters.run_string(one, "class A:\\n  def __del__(self): pass\\nkept = A()")
        print("end")
        """,
}


@pytest.mark.parametrize("program", cases(PROGRAMS))
def test_processes(program: Program, tmp_path: Path) -> None:
    assert_undisturbed(program, tmp_path)
