"""The documentation keeps up with the code: tours name every file, links lead somewhere."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "native" / "README.md"])
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


def name_of(path: Path) -> str:
    """The file as it is cited."""
    return path.relative_to(ROOT).as_posix()


def test_the_tour_names_every_python_file() -> None:
    tour = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    files = [path for path in (ROOT / "tlmem").rglob("*.py") if path.name != "__init__.py"]

    assert [name_of(path) for path in files if f"{path.name}`" not in tour] == []


def test_the_reading_order_names_every_c_file() -> None:
    order = (ROOT / "native" / "README.md").read_text(encoding="utf-8")
    files = [*(ROOT / "native").rglob("*.c"), *(ROOT / "native").rglob("*.h")]
    named = {path.name for path in files if f"{path.name}`" in order}
    frames = {path.name for path in files if re.fullmatch(r"pystack_3\d\d\.h", path.name)}

    assert {path.name for path in files} - named - frames == set()


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


def test_lines_of_scenarios_that_examples_blame_are_the_ones_that_leak() -> None:
    wrong = []
    for page in PAGES:
        named = set(re.findall(r"made at (\w+)\.py:(\d+)", page.read_text(encoding="utf-8")))
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
        as_many = len(files) == len(proofs) == len(parts.split(","))
        if not (as_many and proven and all(file.is_file() for file in files)):
            wrong.append(row)

    assert wrong == []
