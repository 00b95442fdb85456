"""docs/bugs.md: every bug has a row, and what a row names is there."""

import re
from pathlib import Path

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


def test_each_bug_has_a_test_of_its_own() -> None:
    assert [n for n, (absent, _) in ROWS.items() if f"test_b{n}_" not in quoted(absent)] == []


def test_tests_that_are_named_are_in_the_files_that_are_named() -> None:
    missing = []
    for number, row in ROWS.items():
        for part in ";".join(row).split(";"):
            words = quoted(part)
            files = [ROOT / word for word in words if "/" in word]
            text = "".join(p.read_text(encoding="utf-8") for p in files if p.is_file())
            missing += [f"B{number}: {path}" for path in files if not path.exists()]
            missing += [
                f"B{number}: {name}"
                for name in (word for word in words if word.startswith(("test_", "check_")))
                if not re.search(rf"^(def|static void) {name}", text, re.MULTILINE)
            ]

    assert missing == []


def test_scenarios_that_are_named_exist() -> None:
    wrong = []
    for number, (_, caused) in ROWS.items():
        named = [word for word in quoted(caused) if re.fullmatch(r"[a-z]+(-[a-z]+)+", word)]
        wrong += [f"B{number}: {name}" for name in named if name not in SCENARIOS]
        if not named and "no program can" not in caused:
            wrong.append(f"B{number}: names no scenario")
        if "twin" in caused and not any(f"{name}-fixed" in SCENARIOS for name in named):
            wrong.append(f"B{number}: has no twin")

    assert wrong == []


def test_each_scenario_has_a_row_in_the_table_of_what_is_found() -> None:
    page = (ROOT / "docs" / "detection.md").read_text(encoding="utf-8")

    assert re.findall(r"^\| `([a-z-]+)`", page, re.MULTILINE) != []
    assert set(SCENARIOS) - set(quoted(page)) == set()
