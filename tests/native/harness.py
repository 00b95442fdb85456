"""Builds a C test and runs it under a sanitizer or valgrind.

A test is one file ``tests/native/test_*.c`` with a ``main`` that returns 0 when every check held.
Near its top it says what it needs::

    /* tlm-test: sources=own_memory.c,clock.c python=no modes=address,thread,valgrind */

``sources`` are files below ``native`` by their name, or files of this directory;
``core`` stands for the library without its sampler and the planner, ``plan``,
``replay`` and ``ops`` for every file of those folders, ``all`` for every C file, and a name with a
minus in front is taken out again. ``python=yes`` links the interpreter. A source in Objective-C
(``.m``) is built against GNUstep and the stand-in for Metal in ``metal``. Each part may be left
out; the values above, with ``sources=core``, are then meant. Objects are kept in
``build/native-tests`` by the hash of what they were made from, so that a second run compiles only
what changed.

Run as a program, it compiles every object that needs neither the interpreter nor NumPy; it imports
only the standard library then, so that continuous integration does this while packages install.
"""

import contextlib
import functools
import hashlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NATIVE = ROOT / "native"
CORE = ("platform", "log", "memory", "memory/devices", "tape")
TESTS = ROOT / "tests" / "native"
CACHE = ROOT / "build" / "native-tests"
WARNINGS = ("-Wall", "-Wextra", "-Werror")
SECONDS_PER_TEST = 900
"""The slowest, under valgrind, takes 40 s on a quiet machine."""


TSAN_OPTIONS = "halt_on_error=1:second_deadlock_stack=1:atexit_sleep_ms=20"
"""By default each process, also one of hundreds of children, waits a second before it ends."""


@dataclass(frozen=True)
class Mode:
    """One way to build and run a test."""

    name: str
    flags: tuple[str, ...]
    wrapper: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict, hash=False)


MODES = {
    mode.name: mode
    for mode in (
        Mode(
            "address",
            (
                "-fsanitize=address,undefined",
                "-fno-sanitize-recover=all",
                "-fno-omit-frame-pointer",
            ),
            environment={"UBSAN_OPTIONS": "print_stacktrace=1"},
        ),
        Mode(
            "thread",
            ("-fsanitize=thread",),
            environment={"TSAN_OPTIONS": TSAN_OPTIONS},
        ),
        Mode(
            "valgrind",
            (),
            wrapper=(
                "valgrind",
                "--quiet",
                "--error-exitcode=99",
                "--leak-check=full",
                "--fair-sched=try",  # else a thread that never waits may hold up the others
                f"--suppressions={TESTS / 'valgrind.supp'}",
            ),
        ),
    )
}


@dataclass(frozen=True)
class Needs:
    """What a C test says about itself."""

    sources: tuple[str, ...]
    python: bool
    modes: tuple[str, ...]

    @property
    def objective_c(self) -> bool:
        """Whether one of its sources is in Objective-C."""
        return any(name.endswith(".m") for name in self.sources)


def files_of(*patterns: str) -> list[str]:
    """The names of the files below ``native`` that match one of these patterns."""
    return sorted(path.name for pattern in patterns for path in NATIVE.glob(pattern))


def core() -> list[str]:
    """The C files of the library, without the planner and the sampler."""
    library = files_of(*(f"{folder}/*.c" for folder in CORE), "bench/bench*.c")
    return [name for name in library if name != "sampler.c"]


@functools.cache
def native_files() -> dict[str, Path]:
    """Every source file below ``native``, but the examples, by its name.

    Raises:
        ValueError: two files have one name.
    """
    found: dict[str, Path] = {}
    for path in sorted(NATIVE.rglob("*.[cm]")):
        if "examples" not in path.parts and found.setdefault(path.name, path) != path:
            raise ValueError(f"{path} and {found[path.name]} have one name")
    return found


def path_of(name: str) -> Path:
    """The source file of this name, of the library, the extension module or the tests."""
    return native_files().get(name, TESTS / name)


def needs(test: Path) -> Needs:
    """What the ``tlm-test:`` line of a test asks for.

    Raises:
        ValueError: it names a key, a mode or a source file that does not exist.
    """
    head = "\n".join(test.read_text(encoding="utf-8").splitlines()[:15])
    line = re.search(r"tlm-test:([^*\n]*)", head)
    said = dict(part.split("=", 1) for part in (line.group(1).split() if line else ()))
    sources: list[str] = []
    for name in filter(None, said.pop("sources", "core").split(",")):
        if name == "core":
            sources += core()
        elif name == "plan":
            sources += files_of("plan/*.c")
        elif name == "replay":  # without what calls the runtime
            sources += [file for file in files_of("replay/*.c") if file != "pools.c"]
        elif name == "ops":
            sources += files_of("ops/*.c")
        elif name == "all":
            programs = files_of("player/*.c")  # they have a `main`
            sources += sorted(n for n in native_files() if n.endswith(".c") and n not in programs)
        elif name.startswith("-"):
            sources.remove(name[1:])
        else:
            sources.append(name)
    python = said.pop("python", "no") == "yes"
    modes = tuple(said.pop("modes", said.pop("sanitizers", ",".join(MODES))).split(","))
    wrong = [*said, *(m for m in modes if m not in MODES)]
    wrong += [s for s in sources if not path_of(s).exists()]
    if wrong:
        raise ValueError(f"{test.name}: the tlm-test line names {', '.join(wrong)}, unknown here")
    return Needs(tuple(dict.fromkeys(sources)), python, modes)


def compiler() -> list[str]:
    """The C compiler as a command: ``CC``, else gcc, else cc."""
    return shlex.split(os.environ.get("CC", "")) or ["gcc" if shutil.which("gcc") else "cc"]


def run(command: list[str], **options) -> subprocess.CompletedProcess[str]:
    """Runs a command with its output captured; a command that cannot start has exit code 127.

    Its output is a file, and its children end with it: a pipe would be read until the last of
    them is gone.
    """
    with tempfile.TemporaryFile() as said:
        try:
            process = subprocess.Popen(
                command,
                stdout=said,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                **options,
            )
        except OSError as error:
            return subprocess.CompletedProcess(command, 127, str(error))
        try:
            code, late = process.wait(SECONDS_PER_TEST), ""
        except subprocess.TimeoutExpired:
            code, late = 124, f"\nstill running after {SECONDS_PER_TEST} s: {shlex.join(command)}"
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        said.seek(0)
        return subprocess.CompletedProcess(
            command, code, said.read().decode(errors="replace") + late
        )


@functools.cache
def wrapper_of(name: str) -> tuple[tuple[str, ...], str]:
    """The command a mode's programs run under, and the reason when the mode does not work here."""
    mode = MODES[name]
    with tempfile.TemporaryDirectory() as place:
        source = Path(place, "probe.c")
        source.write_text("int main(void) { return 0; }\n")
        program = str(Path(place, "probe"))
        made = run([*compiler(), *mode.flags, str(source), "-o", program])
        if made.returncode:
            return (), f"{' '.join(compiler())} cannot build for {name}: {made.stdout.strip()}"
        tried = [mode.wrapper]
        if sys.platform == "linux" and not mode.wrapper:
            # Sanitizers of older compilers die now and then where addresses are widely randomised;
            # in some containers that cannot be switched off.
            tried.insert(0, ("setarch", "-R"))
        for wrapper in tried:
            result = run([*wrapper, program])
            if result.returncode == 0:
                return wrapper, ""
    return (), f"a program built for {name} does not run: {result.stdout.strip()}"


def python_flags() -> tuple[list[str], list[str]]:
    """Flags that compile against, and link, the running interpreter's library."""
    import numpy

    get = sysconfig.get_config_var
    compile_flags = ["-isystem", get("INCLUDEPY"), "-isystem", numpy.get_include()]
    where = get("LIBDIR")
    link = [f"-L{where}", f"-L{get('LIBPL')}", f"-Wl,-rpath,{where}", f"-lpython{get('LDVERSION')}"]
    for more in ("LIBS", "SYSLIBS", "LINKFORSHARED"):
        link += shlex.split(get(more) or "")
    return compile_flags, [flag for flag in link if "Python.framework" not in flag]


@functools.cache
def objective_c_flags() -> tuple[list[str], list[str], str]:
    """Flags that compile and link Objective-C here, and the reason when that does not work."""
    tool = "gnustep-config"
    if sys.platform == "darwin" or not shutil.which(tool):
        return [], [], f"the stand-in for Metal needs GNUstep: {tool} was not found"
    headers = run([tool, "--variable=GNUSTEP_SYSTEM_HEADERS"]).stdout.strip()
    compile_flags = ["-isystem", headers, f"-I{TESTS / 'metal'}", "-DGNUSTEP_BASE_LIBRARY=1"]
    compile_flags += ["-fexceptions", "-fobjc-exceptions", "-D_NATIVE_OBJC_EXCEPTIONS"]
    compile_flags.append("-fconstant-string-class=NSConstantString")
    link = ["-lgnustep-base", "-lobjc"]
    with tempfile.TemporaryDirectory() as place:
        source = Path(place, "probe.m")
        source.write_text("#import <Foundation/Foundation.h>\nint main(void) { return 0; }\n")
        made = run(
            [*compiler(), *compile_flags, str(source), "-o", str(Path(place, "probe")), *link]
        )
    reason = made.returncode and f"{compiler()[0]} cannot build Objective-C: {made.stdout.strip()}"
    return compile_flags, link, reason or ""


@functools.cache
def headers_hash() -> str:
    """One hash over every header a C file may include."""
    digest = hashlib.sha256()
    for header in sorted([*(ROOT / "native").rglob("*.h"), *TESTS.rglob("*.h")]):
        digest.update(header.read_bytes())
    return digest.hexdigest()


def make(command: list[str], inputs: list[Path], suffix: str) -> Path:
    """Runs a compiler command that ends in ``-o OUT``, or finds what it made before.

    Raises:
        AssertionError: the compiler failed; the message is what it printed.
    """
    digest = hashlib.sha256("\0".join(command).encode())
    digest.update(headers_hash().encode())
    for path in inputs:
        digest.update(path.read_bytes())
    out = CACHE / f"{inputs[-1].stem}-{digest.hexdigest()[:24]}{suffix}"
    if not out.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        draft = out.with_name(f"{out.name}.{os.getpid()}")
        made = run([*command, "-o", str(draft)], cwd=ROOT)
        assert made.returncode == 0, f"{shlex.join(command)}\n{made.stdout}"
        draft.replace(out)
    return out


def compile_command(path: Path, mode: Mode, wanted: Needs) -> list[str]:
    """What compiles one source file, without its output.

    Only tests, files of ``native/python`` and those whose name begins with ``py`` see the
    interpreter's headers, so that the objects of all others are the same for tests with and without
    it.
    """
    command = [*compiler(), "-std=gnu11", "-g", "-O1", "-pthread", *WARNINGS, *mode.flags]
    command += [f"-I{folder}" for folder in (NATIVE / "include", NATIVE, TESTS)]
    sees_python = path.parent == TESTS or NATIVE / "python" in path.parents
    if wanted.python and (sees_python or path.name.startswith("py")):
        command += python_flags()[0]
    if path.suffix == ".m":
        command += objective_c_flags()[0]
    return [*command, "-c", str(path)]


def build(test: Path, mode: Mode, wanted: Needs) -> Path:
    """The program of a test, built for a mode."""
    link: list[str] = ["-lm"]
    if wanted.python:
        link += python_flags()[1]
    if sys.platform == "linux":
        link.append("-ldl")
    if wanted.objective_c:
        link += objective_c_flags()[1]
    inputs = [*(path_of(name) for name in wanted.sources), test]
    objects = [make(compile_command(path, mode, wanted), [path], ".o") for path in inputs]
    return make([*compiler(), "-pthread", *mode.flags, *map(str, objects), *link], objects, "")


def compile_shared_objects() -> None:
    """Compiles what the tests without the interpreter link; skips a mode that does not work."""
    for test in sorted(TESTS.glob("test_*.c")):
        wanted = needs(test)
        if wanted.python or wanted.objective_c:
            continue
        for name in wanted.modes:
            if not wrapper_of(name)[1]:
                build(test, MODES[name], wanted)


def environment(mode: Mode, wanted: Needs) -> dict[str, str]:
    """The environment a test's program runs in."""
    result = {**os.environ, **mode.environment}
    if wanted.python:
        result["PYTHONHOME"] = sys.base_prefix
        result["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if "-packages" in p)
        result["PYTHONMALLOC"] = "malloc"
        result["ASAN_OPTIONS"] = "detect_leaks=0"  # the interpreter leaves much behind at its end
    return result


def execute(
    program: Path, mode: Mode, wanted: Needs, place: Path
) -> subprocess.CompletedProcess[str]:
    """Runs a test's program in a directory of its own."""
    wrapper = list(wrapper_of(mode.name)[0])
    if wanted.python and "valgrind" in wrapper:
        # The interpreter leaves memory behind and reads words it never wrote; neither is ours.
        wrapper += ["--leak-check=no", "--undef-value-errors=no"]
    return run([*wrapper, str(program)], cwd=place, env=environment(mode, wanted))


if __name__ == "__main__":
    compile_shared_objects()
