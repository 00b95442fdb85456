"""What a program may do to its process: descriptors, limits, signals."""

from pathlib import Path

import pytest
from support.hostile import Program, assert_undisturbed, cases

ARRAYS = """
        import numpy as np
        kept = [np.ones(100) for _ in range(2000)]
        """

PROGRAMS: dict[str, str | Program] = {
    # ---- descriptors ----
    "stdin is closed": Program("import sys; print(sys.stdin)", redirect="<&-"),
    "stdout is closed": Program("import sys; print(sys.stdout)", redirect=">&-"),
    "stderr is closed": Program("import sys; print(sys.stderr)", redirect="2>&-", spoken=True),
    "every stream is closed": Program("open('x', 'w').write('a')", redirect="<&- >&- 2>&-"),
    "every stream is closed and the first files are the program's": Program(
        """
        files = [open(f"f{i}", "wb", buffering=0) for i in range(4)]
        import numpy as np
        kept = [np.ones(100) for _ in range(2000)]
        import os
        if [f.fileno() for f in files] != [0, 1, 2, 3] or any(os.path.getsize(f"f{i}") for i in range(4)):
            raise SystemExit(9)
        """,
        redirect="<&- >&- 2>&-",
        spoken=True,
    ),
    "stdout is full": Program("print('a' * 100)", redirect=">/dev/full"),
    "stderr is full": Program(
        "import sys; sys.stderr.write('a')", redirect="2>/dev/full", spoken=True
    ),
    "stdout is a pipe that nobody reads": Program(
        "import os, signal\nprint('a' * 100)\n",
        shell="rm -f p; mkfifo p; exec 3<>p; exec 4>p; exec 3<&-",
        redirect=">&4",
    ),
    "descriptors are closed when the program has begun": """
        import os
        os.closerange(3, 256)
        """
    + ARRAYS,
    "every descriptor is closed": "import os\nos.closerange(0, 70000)\n",
    "every descriptor is overwritten": """
        import os
        null = os.open("mine", os.O_CREAT | os.O_RDWR)
        number = 3
        while number < 1100:
            try:
                if number != null:
                    os.dup2(null, number, inheritable=False)
                number += 1
            except OSError as error:  # a thread opens a file just now: dup2(2) says to call again
                if error.errno != 16:
                    raise
        import numpy as np
        kept = [np.ones(100) for _ in range(2000)]
        print(os.path.getsize("mine"))
        """,
    "descriptors are counted": """
        import os
        print(sorted(n for n in map(int, os.listdir("/proc/self/fd")) if n < 1000)[:-1])
        print(os.open("a", os.O_CREAT), os.open("b", os.O_CREAT))
        """,
    "none of twenty-four descriptors is ours": Program(
        """
        import errno, os
        opened = []
        try:
            while True: opened.append(os.open("/dev/null", os.O_RDONLY))
        except OSError as error:
            print(len(opened), opened[-1], errno.errorcode[error.errno])
        for number in opened: os.close(number)
        """
        + ARRAYS,
        shell="ulimit -S -n 24",
    ),
    "one at most of twenty-four descriptors is ours where the limit is hard": Program(
        """
        import errno, os
        opened = []
        try:
            while True: opened.append(os.open("/dev/null", os.O_RDONLY))
        except OSError as error:
            print(min(len(opened), 20), errno.errorcode[error.errno])
        for number in opened: os.close(number)
        """
        + ARRAYS,
        shell="ulimit -n 24",
    ),
    "the limit of descriptors is lowered while the program runs": """
        import os, resource
        resource.setrlimit(resource.RLIMIT_NOFILE, (12, 12))
        opened = []
        try:
            while True: opened.append(os.open("/dev/null", os.O_RDONLY))
        except OSError as error:
            print(len(opened), error.errno)
        for number in opened: os.close(number)
        """
    + ARRAYS,
    "the limit of descriptors is looked at": """
        import resource
        for name in sorted(n for n in dir(resource) if n.startswith("RLIMIT_")):
            print(name, resource.getrlimit(getattr(resource, name)))
        """,
    "the limit of descriptors is nothing": Program(
        """
        import resource
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
        print("end")
        """,
        spoken=True,
    ),
    # ---- limits ----
    "files may not grow": Program(
        """
        import resource, signal
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        import numpy as np
        kept = [np.ones(10) for _ in range(400_000)]
        print("end")
        """,
        state="",
        complete=False,
    ),
    "files may not grow and the signal is handled": Program(
        """
        import resource, signal
        signal.signal(signal.SIGXFSZ, lambda *_: print("told"))
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        import numpy as np
        kept = [np.ones(10) for _ in range(400_000)]
        print("end")
        """,
        state="",
        complete=False,
    ),
    "files may not be larger from the start": Program(
        "print('end')", shell="ulimit -f 20000", state=""
    ),
    "memory is limited": Program(
        """
        import resource
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
        import numpy as np
        kept = []
        try:
            while True: kept.append(np.zeros(8 << 20))
        except MemoryError as error:
            del kept
            print("full", type(error).__name__)
        """,
    ),
    "no address is left at the end": """
        import resource
        import numpy as np
        kept = np.ones(100)
        resource.setrlimit(resource.RLIMIT_AS, (1, 1))
        """,
    "no process may be started": Program(
        """
        import resource
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
        print("end")
        """,
        spoken=True,
    ),
    "processor time is limited": Program(
        """
        import resource, signal, sys
        signal.signal(signal.SIGXCPU, lambda *_: sys.exit("over"))
        resource.setrlimit(resource.RLIMIT_CPU, (1, 5))
        import numpy as np
        while True: np.ones(1000).sum()
        """,
        long=True,
    ),
    "the stack is small": Program(
        "import threading; threading.stack_size(65536)\n"
        "t = threading.Thread(target=print, args=('ran',)); t.start(); t.join()\n",
        shell="ulimit -s 512",
    ),
    "core files are allowed and the program aborts": Program(
        "import os; os.abort()", shell="ulimit -c 0", state="open"
    ),
    # ---- signals ----
    "alarms come all the time": """
        import signal
        import numpy as np
        count = 0
        def handler(*_):
            global count
            count += 1
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
        total = 0
        while count < 50:
            total += np.ones(100).sum() > 0
        signal.setitimer(signal.ITIMER_REAL, 0)
        print(count >= 50)
        """,
    "alarms come beyond the end": """
        import signal
        seen = []
        signal.signal(signal.SIGALRM, lambda *_: seen.append(1))
        signal.signal(signal.SIGVTALRM, signal.SIG_IGN)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0005, 0.0005)
        import numpy as np
        print("end")
        """,
    "a deadly alarm is due long after the end": Program(
        "import signal; signal.setitimer(signal.ITIMER_REAL, 0.3); print('end')", spoken=True
    ),
    "a deadly profiling alarm is due long after the end": Program(
        "import signal; signal.setitimer(signal.ITIMER_PROF, 0.2); print('end')", spoken=True
    ),
    "every signal is blocked": """
        import signal
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        print(len(signal.pthread_sigmask(signal.SIG_BLOCK, [])))
        """
    + ARRAYS,
    "every signal is ignored": """
        import signal
        for number in signal.valid_signals():
            try: signal.signal(number, signal.SIG_IGN)
            except OSError: pass
        """
    + ARRAYS,
    "every signal is handled": """
        import os, signal
        for number in signal.valid_signals():
            try: signal.signal(number, lambda n, _: print("told", n))
            except (OSError, ValueError): pass
        for number in (signal.SIGUSR1, signal.SIGHUP, signal.SIGCHLD, signal.SIGPIPE, signal.SIGRTMIN):
            os.kill(os.getpid(), number)
        """,
    "handlers are looked at": """
        import signal
        for number in sorted(signal.valid_signals()):
            print(number, signal.getsignal(number))
        """,
    "a handler of SIGCHLD counts": Program(
        """
        import os, signal, subprocess, sys
        count = 0
        def handler(*_):
            global count
            count += 1
            print("child", count)
        signal.signal(signal.SIGCHLD, handler)
        subprocess.run(["true"])
        """,
        spoken=True,
    ),
    "children are reaped by the kernel": Program(
        """
        import os, signal
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        if os.fork() == 0: os._exit(3)
        try:
            os.wait()
        except ChildProcessError as error:
            print(error)
        """,
        spoken=True,
    ),
    "a child that is nobody's is waited for at exit": """
        import atexit, os
        def at_exit():
            try: print(os.wait())
            except ChildProcessError as error: print(error)
        atexit.register(at_exit)
        """,
    "a signal is sent to itself at exit": Program(
        "import atexit, os, signal\natexit.register(os.kill, os.getpid(), signal.SIGTERM)\n",
        state="",
    ),
    "an interrupt comes in an exit handler": """
        import atexit, os, signal
        def at_exit():
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(100): pass
            print("not reached")
        atexit.register(at_exit)
        atexit.register(print, "first")
        """,
    "an interrupt is raised in an exit handler": """
        import atexit
        def at_exit(): raise KeyboardInterrupt("mine")
        atexit.register(at_exit)
        """,
    "an exit handler exits": """
        import atexit, sys
        atexit.register(sys.exit, 9)
        print("end")
        """,
    "an exit handler leaves": Program(
        "import atexit, os\natexit.register(os._exit, 9)\n", state=""
    ),
    "the process stops and goes on": """
        import os, signal, subprocess
        import numpy as np
        subprocess.Popen(["sh", "-c", f"sleep 0.05; kill -CONT {os.getpid()}"])
        os.kill(os.getpid(), signal.SIGSTOP)
        kept = [np.ones(10) for _ in range(100)]
        print("continued")
        """,
    "a wakeup descriptor is set": """
        import os, signal
        r, w = os.pipe()
        os.set_blocking(w, False)
        signal.set_wakeup_fd(w)
        signal.signal(signal.SIGUSR1, lambda *_: None)
        os.kill(os.getpid(), signal.SIGUSR1)
        print(os.read(r, 10))
        """,
    "a signal is waited for by a thread": """
        import os, signal, threading
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
        got = []
        thread = threading.Thread(target=lambda: got.append(signal.sigwait([signal.SIGUSR1])))
        thread.start()
        os.kill(os.getpid(), signal.SIGUSR1)
        thread.join()
        print(got)
        """,
    "a signal for the process goes to its main thread": """
        import os, signal, time
        signal.signal(signal.SIGUSR1, lambda *_: print("told"))
        began = time.monotonic()
        os.kill(os.getpid(), signal.SIGUSR1)
        time.sleep(0.01)
        print("end")
        """,
    "a sleep is cut short by signals only": """
        import ctypes, os, signal
        libc = ctypes.CDLL(None, use_errno=True)
        print(libc.usleep(50_000), ctypes.get_errno())
        """,
    "threads are counted in its status": """
        import threading
        print(threading.active_count(), [each.name for each in threading.enumerate()])
        """,
    "nice and scheduling are changed": """
        import os
        os.nice(1)
        print(os.getpriority(os.PRIO_PROCESS, 0) > 0)
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
            print(len(os.sched_getaffinity(0)))
        """
    + ARRAYS,
    "the user is changed": """
        import os
        if os.getuid() == 0:
            os.setgid(65534); os.setuid(65534)
        print(os.getuid() != 0)
        """
    + ARRAYS,
    "the umask is odd": """
        import os
        os.umask(0o777)
        print("end")
        """,
    "the root is another folder": Program(
        """
        import os
        if os.getuid() == 0: os.chroot("/tmp")
        print("end")
        """,
        spoken=True,
    ),
    "the root is another folder when the recorder's thread starts again": Program(
        """
        import numpy as np, os
        if os.getuid() == 0: os.chroot("/tmp")
        pid = os.fork()
        if pid == 0: os._exit(0)
        os.waitpid(pid, 0)
        """
        + ARRAYS.replace("2000", "20000"),
        spoken=True,
    ),
    "the recording is deleted": Program(
        """
        import os
        os.unlink("../run.tlm") if os.path.exists("../run.tlm") else None
        print("end")
        """
        + ARRAYS,
        state="",
    ),
    "the recording's folder is moved": Program(
        """
        import os
        os.rename("../run.tlm", "../moved.tlm") if os.path.exists("../run.tlm") else None
        """
        + ARRAYS,
        spoken=True,
        state="",
    ),
    "the program's file is deleted": "import os; os.unlink(__file__); 1 / 0",
    "the program's file is changed": "open(__file__, 'w').write('# other\\n' * 9)\n1 / 0\n",
    "a locale is set": """
        import locale
        locale.setlocale(locale.LC_ALL, "")
        print(locale.getlocale(locale.LC_NUMERIC))
        """,
    "the process is dumped by prctl": """
        import ctypes, os, sys
        if sys.platform == "linux":
            print(ctypes.CDLL(None).prctl(4, 0))
        """
    + ARRAYS,
    "the name of the process is read": """
        import sys
        if sys.platform == "linux":
            print(open("/proc/self/comm").read(), end="")
        """,
}


@pytest.mark.parametrize("program", cases(PROGRAMS))
def test_system(program: Program, tmp_path: Path) -> None:
    assert_undisturbed(program, tmp_path)
