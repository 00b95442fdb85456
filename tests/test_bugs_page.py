"""docs/bugs.md: every bug has a row, and what a row names is there."""

import re
from pathlib import Path

import pytest
from tlmem.scenarios.harness import catalog

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "bugs.md").read_text(encoding="utf-8")
ROWS = {
    int(number): (absent.strip(), caused.strip())
    for number, absent, caused in re.findall(
        r"^\| B(\d+) \|[^|]*\|([^|]*)\|([^|]*)\|$", PAGE, re.MULTILINE
    )
}
SCENARIOS = catalog.scenarios()


def quoted(text: str) -> list[str]:
    """What stands between backquotes."""
    return re.findall(r"`([^`]*)`", text)


def test_each_bug_has_one_row() -> None:
    assert re.findall(r"^\| B(\d+) ", PAGE, re.MULTILINE) == [str(n) for n in range(1, 22)]
    assert sorted(ROWS) == list(range(1, 22))


@pytest.mark.parametrize("number", sorted(ROWS))
def test_each_bug_has_a_test_of_its_own(number: int) -> None:
    assert f"test_b{number}_" in quoted(ROWS[number][0])


@pytest.mark.parametrize("number", sorted(ROWS))
def test_tests_that_are_named_are_in_the_files_that_are_named(number: int) -> None:
    for part in ";".join(ROWS[number]).split(";"):
        words = quoted(part)
        files = [ROOT / word for word in words if "/" in word]
        for name in (word for word in words if word.startswith(("test_", "check_"))):
            texts = [path.read_text(encoding="utf-8") for path in files]
            pattern = rf"^(def|static void) {name}"
            assert any(re.search(pattern, text, re.MULTILINE) for text in texts), (name, files)


@pytest.mark.parametrize("number", sorted(ROWS))
def test_scenarios_that_are_named_exist(number: int) -> None:
    caused = ROWS[number][1]
    named = [word for word in quoted(caused) if re.fullmatch(r"[a-z]+(-[a-z]+)+", word)]

    assert [name for name in named if name not in SCENARIOS] == []
    assert named or "no program can" in caused
    if "twin" in caused:
        assert any(f"{name}-fixed" in SCENARIOS for name in named)


def test_each_scenario_has_a_row_in_the_table_of_what_is_found() -> None:
    page = (ROOT / "docs" / "detection.md").read_text(encoding="utf-8")

    assert re.findall(r"^\| `([a-z-]+)`", page, re.MULTILINE) != []
    assert set(SCENARIOS) - set(quoted(page)) == set()
