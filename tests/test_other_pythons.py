"""The newest other Python of this machine: its wheel, and what depends on the version of Python."""

import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / ".ci" / "wheels"

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("other pythons")]


@pytest.fixture(scope="module")
def wheels() -> ModuleType:
    loader = SourceFileLoader("wheels", str(SCRIPT))
    spec = spec_from_loader("wheels", loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def other(wheels: ModuleType) -> str:
    """A Python of another version than this one."""
    others = [path for path in wheels.found() if wheels.version(path) != sys.version_info[:2]]
    if not others:
        pytest.skip("no CPython of another version from 3.11 to 3.15 is found")
    return str(others[-1])


def test_its_wheel_works_and_a_share_of_the_tests_passes(other: str) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--tests", other], text=True, capture_output=True
    )

    assert done.returncode == 0, done.stderr
    assert "records, reports, draws" in done.stdout
    assert " passed" in done.stdout


def test_what_is_no_python_is_left_out(wheels: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "python3.12").write_text("#!/bin/sh\necho 'pyenv: python3.12: command not found'\n")
    (tmp_path / "python3.12").chmod(0o755)

    assert wheels.version(str(tmp_path / "python3.12")) is None
    assert wheels.version(str(tmp_path / "missing")) is None
    assert wheels.version(sys.executable) == sys.version_info[:2]
