"""Programs in C that several files test, built once."""

import shlex
import subprocess
from pathlib import Path

import pytest
from support import programs
from support.foreign import ENDINGS, OVERRETAIN, STEPS, TRAIN, Run, build

from tlmem.recorder import linking


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the programs are built."""
    return tmp_path_factory.mktemp("foreign")


@pytest.fixture(scope="session")
def steps(place: Path) -> Path:
    """The example with the leak that can be switched on."""
    return build(place / "steps", [STEPS, OVERRETAIN / "refs.c"])


@pytest.fixture(scope="session")
def steps_library(place: Path) -> Path:
    """The same as a library."""
    sources = [STEPS, OVERRETAIN / "refs.c"]
    return build(place / "libsteps.so", sources, "-shared", "-fPIC")


@pytest.fixture(scope="session")
def endings(place: Path) -> Path:
    """A program that ends in many ways."""
    return build(place / "endings", [ENDINGS])


@pytest.fixture
def recorded(tmp_path: Path) -> Run:
    """Runs a program that the environment records to ``run.tlm``."""

    def run(*command: object, **changes: str) -> "subprocess.CompletedProcess[bytes]":
        usual = {"TLMEM_RECORD": "run.tlm", "TLMEM_LIBRARY": linking.get_library()}
        environment = {**usual, **changes}
        return programs.run([str(word) for word in command], tmp_path, environment=environment)

    return run


@pytest.fixture(scope="session")
def train(place: Path) -> Path:
    """The example that links the library."""
    return build(place / "train", [TRAIN], "-std=c11", *shlex.split(linking.link_flags()))
