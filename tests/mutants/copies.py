"""Copies of the tree in which one file at a time is broken, built, and restored.

A Python mutant needs no build. Of a C mutant only its own file is compiled, and linked with what
was compiled once of the whole tree, with little optimisation; a header compiles everything again.
The tree itself is never touched.
"""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import numpy

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("tlmem", "dashboards", "scenarios", "native", "tests", "docs", "pyproject.toml")
COMPILED = (".c", ".m", ".h")
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.o", "*.tlm", ".*_cache")
OPTIMISE = "-O1"
INSTEAD_OF = ("-O2", "-O3")  # nothing is measured here, and compiling takes half the time
EXTENSION = "_native" + sysconfig.get_config_var("EXT_SUFFIX")


class BrokenTool(Exception):
    """The tool cannot go on: a stale row, a mutant that does not compile, tests that are red."""


class Build:
    """Compiles and links the core and the extension module as ``setup.py`` does.

    Args:
        place: where objects are kept from run to run; only what changed is compiled again.
    """

    def __init__(self, place: Path) -> None:
        self.place = place
        where = os.getcwd()
        os.chdir(ROOT)
        try:
            native = runpy.run_path("native/build_ffi.py")
            place.mkdir(parents=True, exist_ok=True)
            with redirect_stdout(StringIO()):  # cffi says what it writes
                native["ffibuilder"].emit_c_code(str(place / "_native.c"))
            sources = native["sources_of"](native["EXTENSION_FOLDERS"])
            self.extension = [*sources, *native["files"]("bench/py*.c"), str(place / "_native.c")]
            self.library = native["library_sources"]()
        finally:
            os.chdir(where)
        self.native = native

    def whole(self) -> None:
        """Compiles what changed of the tree since the last run."""
        headers = [*ROOT.glob("native/**/*.h"), ROOT / "native" / "build_ffi.py"]
        newest = max(path.stat().st_mtime for path in headers)

        def is_old(source: str) -> bool:
            made = self.object_of(source)
            known = made.stat().st_mtime if made.exists() else 0.0
            return known < max((ROOT / source).stat().st_mtime, newest)

        self.compile_all(ROOT, self.place, filter(is_old, [*self.library, *self.extension]))

    def compile_all(self, tree: Path, place: Path, sources: Iterable[str]) -> None:
        """Compiles sources of a tree into a folder."""

        def compile_one(source: str) -> None:
            self.compile(tree, source, self.object_of(source, place))

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(compile_one, sources))

    def object_of(self, source: str, place: Path | None = None) -> Path:
        """Where the object of a source is."""
        return (place or self.place) / (Path(source).as_posix().strip("/").replace("/", "-") + ".o")

    def compile(self, tree: Path, source: str, made: Path) -> None:
        """Compiles one source of a tree."""
        native = self.native
        of_extension = source in self.extension
        options = [*native["COMPILE"], *(native["OPS_COMPILE"] if of_extension else [])]
        options = [each for each in options if each not in INSTEAD_OF]
        standard = native["STANDARD"] if source.endswith(".c") else []
        folders = [str(tree / each) for each in native["INCLUDE"]]
        if of_extension:
            folders += [numpy.get_include(), sysconfig.get_path("include")]
        compiler = sysconfig.get_config_var("CC").split()
        include = [f"-I{each}" for each in folders]
        begin = [*compiler, OPTIMISE, "-fPIC", "-DNDEBUG", *options, *standard, *include]
        run([*begin, "-c", str(tree / source), "-o", str(made)], f"{source} does not compile")

    def link(self, package: Path, instead: dict[str, Path] | None = None, what: str = "") -> None:
        """Links into a package's folder, with other objects for some sources.

        Args:
            what: ``library`` or ``extension`` when only that changed.
        """
        native, instead = self.native, instead or {}
        link = sysconfig.get_config_var("LDSHARED").split()
        objects = {
            name: [str(instead.get(each, self.object_of(each))) for each in sources]
            for name, sources in (("library", self.library), ("extension", self.extension))
        }
        needs = [f"-l{each}" for each in native["LIBRARY_NEEDS"]]
        folder = package / "lib"
        folder.mkdir(exist_ok=True)
        library, extension = folder / native["LIBRARY"], package / EXTENSION
        if what != "extension":
            library.unlink(missing_ok=True)  # a process may still have it loaded
            made = [*objects["library"], *native["LIBRARY_LINK"], *needs, "-o", str(library)]
            run([*link, *made], "the library does not link")
        if what != "library":
            extension.unlink(missing_ok=True)
            made = [*objects["extension"], f"-L{folder}", "-ltlmem", *needs, "-pthread"]
            made += [*native["FIND_LIBRARY"], "-o", str(extension)]
            run([*link, *made], "the extension module does not link")


def run(command: list[str], wrong: str) -> None:
    """Runs a command that must succeed; ``wrong`` says what it means when it does not."""
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    if done.returncode:
        raise BrokenTool(f"{wrong}:\n{done.stderr[-2000:]}")


class Copy:
    """A copy of the tree that one mutant at a time is applied to.

    Args:
        place: the folder; what is there is replaced.
        build: compiles C files; None for a copy that takes the extension module as it is.
    """

    def __init__(self, place: Path, build: Build | None = None) -> None:
        self.place, self.build = place, build
        self.whole: dict[str, str] = {}  # text of the files that are broken now
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        for name in COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, place / name, ignore=LEFT_OUT)
            else:
                shutil.copy2(ROOT / name, place / name)
        if build is not None:
            build.link(place / "tlmem")

    def apply(self, file: str, find: str, replacement: str) -> None:
        """Breaks one file.

        Raises:
            BrokenTool: the text is not there exactly once, or the result does not compile.
        """
        path = self.place / file
        text = path.read_text(encoding="utf-8")
        if text.count(find) != 1:
            raise BrokenTool(f"{file} has this text {text.count(find)} times, not once:\n{find}")
        self.whole[file] = text
        self.write(path, text.replace(find, replacement))
        if Path(file).suffix in COMPILED:
            self.compile(file)

    def restore(self, file: str) -> None:
        """Puts the file, and what was built of it, back; nothing when it is whole."""
        text = self.whole.pop(file, None)
        if text is None:
            return
        self.write(self.place / file, text)
        if Path(file).suffix in COMPILED and self.build is not None:
            self.build.link(self.place / "tlmem", what=self.part_of(file))

    def compile(self, file: str) -> None:
        """Builds the copy again after a change of one file."""
        if self.build is None:
            raise BrokenTool(f"{file} cannot be built here")
        scratch = self.place / "objects"
        scratch.mkdir(exist_ok=True)
        every = [*self.build.library, *self.build.extension]
        sources = every if file.endswith(".h") else [file]
        self.build.compile_all(self.place, scratch, sources)
        instead = {each: self.build.object_of(each, scratch) for each in sources}
        self.build.link(self.place / "tlmem", instead, self.part_of(file))

    def part_of(self, file: str) -> str:
        """Which of the two has to be linked again; empty for both."""
        assert self.build is not None
        if file in self.build.library:
            return "library"
        return "extension" if file in self.build.extension else ""

    def write(self, path: Path, text: str) -> None:
        path.write_text(text, encoding="utf-8")
        for cached in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            cached.unlink()  # its date is in whole seconds

    def environment(self) -> dict[str, str]:
        """For a process that uses this copy and no other."""
        paths = os.pathsep.join([str(self.place), str(self.place / "tests")])
        plain = {"PYTHONHASHSEED": "0", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # half the time
        return {**os.environ, **plain, "PYTHONPATH": paths}

    def require_own(self) -> None:
        """Fails when a process here would import anything but this copy."""
        code = "import tlmem, tlmem._native as n; print(tlmem.__file__); print(n.__file__)"
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=self.place,
            env=self.environment(),
            capture_output=True,
            text=True,
        )
        found = done.stdout.split("\n")[:2]
        if done.returncode or not all(Path(each).is_relative_to(self.place) for each in found):
            raise BrokenTool(f"{found} is used in {self.place}: {done.stderr[-1000:]}")
