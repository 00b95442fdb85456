"""The documentation keeps up with the code: tours name every file, links lead somewhere."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "native" / "README.md"])
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")

ANCHORED = re.compile(r"\[[^\]]*\]\(([^)#\s]*)#([^)\s]+)\)")


def name_of(path: Path) -> str:
    """The file as it is cited."""
    return path.relative_to(ROOT).as_posix()


def test_the_page_and_the_drawing_of_the_house_are_up_to_date() -> None:
    house = runpy.run_path(str(ROOT / "docs" / "house.py"))

    assert house["main"](["--check"]) == 0


def test_the_design_page_can_be_read_in_five_minutes() -> None:
    words = re.findall(r"\w+", (ROOT / "docs" / "design.md").read_text(encoding="utf-8"))

    assert len(words) <= 1200


FRONT = [
    *(
        ROOT / name
        for name in ("README.md", "CONTRIBUTING.md", "docs/index.md", "docs/findings.md")
    ),
    *sorted((ROOT / "docs" / "how-to").glob("*.md")),
]
CALQUES = re.compile(r"\b(?:is no|nobody|told|said that)\b", re.IGNORECASE)
OF_ANY_PAGE = re.compile(r"(?<!there )\bis no\b(?! longer)|\b(?:nobody|told)\b", re.IGNORECASE)
MOST_CALQUES = 3
"""``nobody`` is the name of a holder, too."""


@pytest.mark.parametrize("page", FRONT, ids=name_of)
def test_a_page_that_users_read_first_is_short_and_plain(page: Path) -> None:
    text = page.read_text(encoding="utf-8")

    assert len(text.split()) <= 1500
    assert CALQUES.findall(text) == []


def test_few_sentences_of_the_other_pages_are_calques() -> None:
    """Those that are not references or written by a command; the message lists them."""
    written = {"benchmarks.md", "detection.md", "format.md", "foreign.md", "mutants.md"}
    pages = [
        *(page for page in (ROOT / "docs").glob("*.md") if page.name not in written),
        *(ROOT / "docs" / "decisions").glob("*.md"),
        *(ROOT / "docs" / "findings").glob("*.md"),
        *(ROOT / "native").rglob("README.md"),
    ]
    found = [
        f"{page.relative_to(ROOT)}: {line.strip()}"
        for page in pages
        for line in page.read_text(encoding="utf-8").splitlines()
        if OF_ANY_PAGE.search(line)
    ]

    assert len(found) <= MOST_CALQUES, "\n".join(found)


def test_the_pages_of_the_house_name_only_files_that_exist() -> None:
    places = {
        ROOT / "native" / "README.md": ROOT / "native",
        ROOT / "docs" / "design.md": ROOT,
        ROOT / "docs" / "seed-map.md": ROOT,
    }
    places |= {path: path.parents[1] for path in (ROOT / "native").glob("*/README.md")}
    missing = []
    for page, folder in places.items():
        named = re.findall(r"`([\w./]+/[\w.]+\.[chmp]y?)`", page.read_text(encoding="utf-8"))
        named = [name for name in named if name != "folder/file.h"]
        missing += [
            f"{name_of(page)}: {name}"
            for name in named
            if not (folder / name).exists() and not (ROOT / name).exists()
        ]

    assert missing == []


def test_links_lead_to_files() -> None:
    broken = []
    for page in PAGES:
        links = LINK.findall(page.read_text(encoding="utf-8"))
        broken += [
            f"{name_of(page)}: {link}"
            for link in links
            if ":" not in link and not (page.parent / link).exists()
        ]

    assert broken == []


def anchors(page: Path) -> set[str]:
    """What a link can name within a page: headings as GitHub spells them."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings]
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}


def test_links_into_a_page_lead_to_headings() -> None:
    broken = []
    for page in PAGES:
        for path, anchor in ANCHORED.findall(page.read_text(encoding="utf-8")):
            target = page.parent / path if path else page
            if target.suffix == ".md" and ":" not in path and anchor not in anchors(target):
                broken.append(f"{name_of(page)}: {path}#{anchor}")

    assert broken == []


def test_lines_of_scenarios_that_examples_blame_are_the_ones_that_leak() -> None:
    wrong = []
    for page in PAGES:
        named = set(
            re.findall(r"(?:allocated|Leak) at (\w+)\.py:(\d+)", page.read_text(encoding="utf-8"))
        )
        for name, line in sorted(named):
            for scenario in (ROOT / "scenarios" / "programs").glob(f"*/{name}.py"):
                lines = scenario.read_text(encoding="utf-8").splitlines()
                if "# leaks here" not in (lines[int(line) - 1 : int(line)] or [""])[0]:
                    wrong.append(f"{name_of(page)}: {name}.py:{line}")

    assert wrong == []


def test_the_seed_map_has_one_row_for_each_number() -> None:
    text = (ROOT / "docs" / "seed-map.md").read_text(encoding="utf-8")
    numbers = [int(number) for number in re.findall(r"^\| S(\d+) \|", text, re.MULTILINE)]

    assert numbers == list(range(1, 76))


def test_every_row_of_the_seed_map_names_files_and_tests_that_name_the_number() -> None:
    text = (ROOT / "docs" / "seed-map.md").read_text(encoding="utf-8")
    wrong = []
    for row in re.findall(r"^\| S\d+ \|.*$", text, re.MULTILINE):
        number, _, parts, sources, tests = (cell.strip() for cell in row.split("|")[1:6])
        named = re.compile(rf"\b{number}\b|_s0*{number[1:]}_")
        files = [ROOT / name for name in re.findall(r"`([^`]+)`", sources)]
        proofs = [ROOT / name for name in re.findall(r"`([^`]+)`", tests)]
        proven = all(
            proof.is_file() and named.search(proof.read_text(encoding="utf-8")) for proof in proofs
        )
        count = len(parts.split(","))
        as_many = (
            len(files) == len(proofs) == count if count > 1 else min(len(files), len(proofs)) > 0
        )
        if not (as_many and proven and all(file.is_file() for file in files)):
            wrong.append(row)

    assert wrong == []
