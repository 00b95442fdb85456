"""Where the options of ``tlmem record`` end and the program begins, as on python's command line."""

import pytest

from tlmem.cli import main
from tlmem.cli.arguments import UsageError
from tlmem.cli.record import make_parser, split


@pytest.mark.parametrize(
    "words, own, program",
    [
        ("a.py -q --zombie", [], ("script", "a.py", ["-q", "--zombie"])),
        ("-fq a.py", ["--force", "--quiet"], ("script", "a.py", [])),
        ("-fqo x.tlm a.py b", ["--force", "--quiet", "--output=x.tlm"], ("script", "a.py", ["b"])),
        ("-ox.tlm -", ["--output=x.tlm"], ("script", "-", [])),
        ("-o -x.tlm a.py", ["--output=-x.tlm"], ("script", "a.py", [])),
        ("--output=x=y a.py", ["--output=x=y"], ("script", "a.py", [])),
        ("-q -- -a.py -q", ["--quiet"], ("script", "-a.py", ["-q"])),
        ("-q -- -m a", ["--quiet"], ("script", "-m", ["a"])),
        ("-m a.b -q -- x", [], ("module", "a.b", ["-q", "--", "x"])),
        ("-ma.b -q", [], ("module", "a.b", ["-q"])),
        ("-qm a.b -q", ["--quiet"], ("module", "a.b", ["-q"])),
        ("-c -1 -m", [], ("code", "-1", ["-m"])),
        ("-cprint() -o", [], ("code", "print()", ["-o"])),
        ("--zombie a.py", ["--zombie="], ("script", "a.py", [])),
        ("--zombie=1MB a.py", ["--zombie=1MB"], ("script", "a.py", [])),
        ("--zombie -q", ["--zombie=", "--quiet"], ("script", None, [])),
        ("", [], ("script", None, [])),
    ],
)
def test_options_end_where_the_program_begins(
    words: str, own: list[str], program: tuple[str, str | None, list[str]]
) -> None:
    assert split(words.split(), make_parser()[0]) == (own, program)


@pytest.mark.parametrize(
    "words, why",
    [
        ("--quiet=1 a.py", "'--quiet=1' is not an option of record"),
        ("--quie a.py", "'--quie' is not an option of record"),
        ("-qx a.py", "'-x' is not an option of record"),
        ("-q -o", "-o needs a value"),
        ("-q -m", "-m needs a value"),
        ("--output= a.py", "--output needs a value, and '' is none"),
    ],
)
def test_what_is_not_understood_is_named(words: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        split(words.split(), make_parser()[0])


def test_run_is_another_name_for_record(capsys: pytest.CaptureFixture[str]) -> None:
    helps = []
    for command in ("record", "run"):
        assert main([command, "--help"]) == 0
        helps.append(capsys.readouterr().out)

    assert helps[0] == helps[1]
    assert "--zombie[=SIZE]" in helps[0] and "--zombie [SIZE]" not in helps[0]
