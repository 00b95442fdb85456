"""Paths and flags for compilers, and what is said where the C part is missing."""

import os
import shlex
from pathlib import Path

import pytest

from tlmem.cli import main
from tlmem.recorder import linking


def test_the_headers_and_the_library_are_where_it_says() -> None:
    folder = Path(linking.get_include())
    names = {path.name for path in folder.iterdir()}

    assert set(linking.HEADERS) <= names
    assert Path(linking.get_library()).read_bytes()[:4] in (b"\x7fELF", b"\xcf\xfa\xed\xfe")


def test_the_installed_headers_are_those_of_the_sources() -> None:
    sources = Path(__file__).resolve().parents[2] / "native" / "include"
    installed = Path(linking.get_include())

    for name in linking.HEADERS:
        assert (installed / name).read_text() == (sources / name).read_text()


def test_flags_name_both_and_survive_a_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "with a space"
    for name in (*linking.HEADERS, linking.LIBRARY):
        folder = place / ("lib" if name == linking.LIBRARY else "include")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    monkeypatch.setattr(linking, "__file__", str(place / "recorder" / "linking.py"))
    lib = os.path.join(place, "lib")

    assert shlex.split(linking.compile_flags()) == [f"-I{place / 'include'}"]
    assert shlex.split(linking.link_flags()) == [f"-L{lib}", f"-Wl,-rpath,{lib}", "-ltlmem"]


def test_the_command_prints_flags_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["doctor", "--cflags", "--libs"])

    expected = f"{linking.compile_flags()} {linking.link_flags()}\n"
    assert (code, capsys.readouterr().out) == (0, expected)


def test_without_the_c_part_it_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(linking, "__file__", str(tmp_path / "recorder" / "linking.py"))
    with pytest.raises(linking.NoLibrary, match="install it where a C compiler is"):
        linking.get_library()

    assert (main(["doctor", "--libs"]), capsys.readouterr().err[:6]) == (2, "tlmem:")
