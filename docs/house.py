"""``python docs/house.py``: draws the house and writes the table of folders into docs/design.md.

Both are read from the heads of the folders: the docstring of a Python package, the README.md of a
folder of C files. ``--check`` changes nothing and exits 1 when page or drawing is not up to date.
"""

from __future__ import annotations

import ast
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "design.md"
DRAWING = ROOT / "docs" / "images" / "house.svg"
BEGIN, END = "<!-- folders: begin, by docs/house.py -->\n", "<!-- folders: end -->\n"
RECORDING_SIDE = ("recorder", "runtime", "compiler")
ON_TOP = ("cli", "testing", "scenarios")

WIDTH, HEIGHT, GAP, FLOOR, MARGIN = 148, 34, 14, 72, 20
COLOURS = {"C": "#e7d9c4", "recording": "#f3c9b5", "reading": "#c3dbe8", "top": "#d9d4ea"}


@dataclass
class Folder:
    """A folder of the house: what it is, what it may use, on which side it stands."""

    name: str
    says: str
    uses: list[str]
    side: str


def listed(text: str) -> list[str]:
    """The names of a line such as ``errors, units.``, without what holds inside functions."""
    names = text.partition("Inside functions:")[0].split(",")
    names = [name.strip().rstrip(".").strip("`") for name in names]
    return [name for name in names if name and name != "nothing"]


def python_folder(path: Path) -> Folder:
    """What the docstring of a package says."""
    parts = path.parent.relative_to(ROOT).parts
    name = ".".join(parts[1:] if parts[0] == "tlmem" else parts)
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    uses = re.search(r"May import:(.*?)(?=^\S[\w -]*:|^\s*$|\Z)", text, re.MULTILINE | re.DOTALL)
    top = name.split(".")[0]
    side = "recording" if top in RECORDING_SIDE else "top" if top in ON_TOP else "reading"
    return Folder(name, text.partition("\n")[0], listed(uses[1]) if uses else [], side)


def c_folder(path: Path) -> Folder:
    """What the README.md of a folder of C files says."""
    text = path.read_text(encoding="utf-8")
    uses = re.search(r"May use:(.*?)(?=\n\s*\n|\Z)", text, re.DOTALL)
    says = next(line for line in text.splitlines() if line and not line.startswith("#"))
    name = path.parent.relative_to(ROOT).as_posix()
    names = [f"native/{use.removeprefix('native/')}" for use in listed(uses[1])] if uses else []
    return Folder(name, says, names, "C")


def folders() -> dict[str, Folder]:
    """Every folder of C and Python that says what it may use, by name."""
    packages = [
        path
        for tree in ("tlmem", "dashboards", "scenarios")
        for path in sorted((ROOT / tree).rglob("__init__.py"))
        if path.parent != ROOT / "tlmem" and "scenarios/programs/" not in path.as_posix()
    ]
    native = sorted((ROOT / "native").glob("**/README.md"))
    native = [path for path in native if path.parent != ROOT / "native"]
    found = [python_folder(path) for path in packages] + [c_folder(path) for path in native]
    return {folder.name: folder for folder in found}


def below(house: dict[str, Folder], name: str) -> set[str]:
    """The folders that one may use, folders within a named one included; not its own rooms."""
    uses = house[name].uses
    return {
        other
        for other in house
        if other != name
        and any(other == use or other.startswith((f"{use}.", f"{use}/")) for use in uses)
    }


def within(one: str, other: str) -> bool:
    """Whether one folder stands in the other."""
    return other.startswith((f"{one}.", f"{one}/"))


def floors(house: dict[str, Folder]) -> dict[str, int]:
    """How high each folder stands: one floor above the highest that it uses."""
    level: dict[str, int] = {}

    def of(name: str, way: tuple[str, ...]) -> int:
        if name not in level:
            uses = [use for use in below(house, name) if use not in way and not within(use, name)]
            level[name] = 1 + max((of(use, (*way, name)) for use in uses), default=-1)
        return level[name]

    for name in house:
        of(name, ())
    return level


def needed_arrows(house: dict[str, Folder], level: dict[str, int]) -> list[tuple[str, str]]:
    """The uses that do not follow from others: what a reader has to see."""
    uses = {name: {u for u in below(house, name) if level[u] < level[name]} for name in house}
    far: dict[str, set[str]] = {}
    for name in sorted(house, key=level.__getitem__):
        far[name] = uses[name].union(*(far[use] for use in uses[name]))
    return [
        (name, use)
        for name in house
        for use in sorted(uses[name])
        if not any(use in far[other] for other in uses[name] - {use})
    ]


def drawing(house: dict[str, Folder]) -> str:
    """The house as SVG: C on the left, Python that records above it, what reads on the right."""
    level = floors(house)
    wings = [
        [n for n in house if house[n].side in ("C", "recording")],
        [n for n in house if house[n].side in ("reading", "top")],
    ]
    lift = {n: level[n] + 0 for n in house}
    top_of_c = max(level[n] for n in house if house[n].side == "C")
    for name in wings[0]:
        if house[name].side == "recording":
            lift[name] = level[name] + top_of_c + 1
    lowest = min(lift[n] for n in wings[0] if house[n].side == "recording") - top_of_c - 1
    for name in wings[0]:
        if house[name].side == "recording":
            lift[name] -= lowest
    place: dict[str, tuple[float, float]] = {}
    left, highest = float(MARGIN), max(lift.values())
    for wing in wings:
        rows: dict[int, list[str]] = {}
        for name in wing:
            rows.setdefault(lift[name], []).append(name)
        widest = max(len(row) for row in rows.values())
        span = widest * (WIDTH + GAP) - GAP
        for floor, row in rows.items():
            start = left + (span - (len(row) * (WIDTH + GAP) - GAP)) / 2
            for number, name in enumerate(sorted(row)):
                x = start + number * (WIDTH + GAP)
                place[name] = (x, MARGIN + (highest - floor) * FLOOR)
        left += span + 4 * GAP
    bottom = MARGIN + highest * FLOOR + HEIGHT + 2 * GAP
    wide, high = left - 4 * GAP + MARGIN, bottom + HEIGHT + MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:.0f} {high:.0f}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="12">',
        f'<rect width="{wide:.0f}" height="{high:.0f}" fill="#ffffff"/>',
    ]
    for name, use in needed_arrows(house, level):
        (x1, y1), (x2, y2) = place[name], place[use]
        x1, x2, y1 = x1 + WIDTH / 2, x2 + WIDTH / 2, y1 + HEIGHT
        middle = (y1 + y2) / 2
        lines.append(
            f'<path d="M{x1:.0f} {y1:.0f}C{x1:.0f} {middle:.0f} {x2:.0f} {middle:.0f} '
            f'{x2:.0f} {y2:.0f}" fill="none" stroke="#8a8a8a" stroke-width="0.8"/>'
        )
    for name, (x, y) in place.items():
        folder = house[name]
        lines.append(
            f'<g><title>{escape(folder.says)}</title><rect x="{x:.0f}" y="{y:.0f}" '
            f'width="{WIDTH}" height="{HEIGHT}" rx="4" fill="{COLOURS[folder.side]}" '
            f'stroke="#555555" stroke-width="0.8"/><text x="{x + WIDTH / 2:.0f}" '
            f'y="{y + HEIGHT / 2 + 4:.0f}" text-anchor="middle">{escape(name)}</text></g>'
        )
    lines.append(
        f'<rect x="{MARGIN}" y="{bottom:.0f}" width="{wide - 2 * MARGIN:.0f}" height="{HEIGHT}" '
        'rx="4" fill="#fff7cf" stroke="#555555" stroke-width="0.8"/>'
        f'<text x="{wide / 2:.0f}" y="{bottom + HEIGHT / 2 + 4:.0f}" text-anchor="middle">'
        "the recording: written on the left by native/log, read on the right by recording.format "
        "(docs/format.md)</text>"
    )
    return "\n".join([*lines, "</svg>", ""])


def table(house: dict[str, Folder]) -> str:
    """The folders in Markdown, C first, from the ground up."""
    level = floors(house)
    order = sorted(house, key=lambda n: (house[n].side != "C", n.split(".")[0], n, level[n]))
    rows = ["| folder | what it is | may use |", "|---|---|---|"]
    for name in order:
        folder = house[name]
        uses = ", ".join(use.removeprefix("native/") for use in folder.uses) or "–"
        rows.append(f"| `{name}` | {folder.says.rstrip('.')} | {uses} |")
    return "\n".join(rows) + "\n"


def main(words: list[str]) -> int:
    """Writes page and drawing, or says whether they are up to date."""
    house = folders()
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    after = rest.partition(END)[2]
    made = {PAGE: f"{before}{BEGIN}{table(house)}{END}{after}", DRAWING: drawing(house)}
    stale = [path for path, text in made.items() if not path.is_file() or path.read_text() != text]
    if "--check" in words:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is out of date; run: python docs/house.py")
        return 1 if stale else 0
    for path in stale:
        path.write_text(made[path], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
