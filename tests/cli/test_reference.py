"""``docs/reference/cli.md`` names every command and every option that ``--help`` names."""

import re
from pathlib import Path

import pytest

from tlmem.cli import COMMANDS, main

REFERENCE = (Path(__file__).resolve().parents[2] / "docs/reference/cli.md").read_text("utf-8")


def test_the_reference_has_a_section_and_a_row_for_each_command() -> None:
    assert [name for name in COMMANDS if f"\n## tlmem {name}\n" not in REFERENCE] == []
    assert [name for name in COMMANDS if f"\n| [`{name}`](#tlmem-{name})" not in REFERENCE] == []


def test_the_reference_names_every_option_by_one_of_its_spellings(
    capsys: pytest.CaptureFixture[str],
) -> None:
    missing = []
    for command in COMMANDS:
        try:
            main([command, "--help"])
        except SystemExit:  # argparse's own --help
            pass
        section = REFERENCE.split(f"\n## tlmem {command}\n")[1].split("\n## ")[0]
        for line in re.findall(r"^  (-.+)$", capsys.readouterr().out, re.MULTILINE):
            spellings = re.findall(r"(?:^|, )(--?[a-z-]+)", line)
            if "--help" not in spellings and not any(each in section for each in spellings):
                missing.append(f"{command}: {spellings}")

    assert missing == []
