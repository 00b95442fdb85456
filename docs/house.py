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

WIDTH, HEIGHT, GAP, FLOOR, MARGIN = 168, 44, 16, 76, 20
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
    says = text.partition("\n")[0].lstrip("# ").partition(": ")[2]
    says = says[:1].upper() + says[1:]
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


@dataclass
class Room:
    """A folder at the top, with the folders within it: what the drawing shows as one box."""

    name: str
    inner: list[str]
    uses: set[str]
    side: str
    floor: int = 0


def room_of(name: str) -> str:
    """The folder at the top that a folder stands in."""
    return "/".join(name.split("/")[:2]) if "/" in name else name.split(".")[0]


def rooms(house: dict[str, Folder]) -> dict[str, Room]:
    """The boxes of the drawing, each one floor above the highest that it uses."""
    found: dict[str, Room] = {}
    for name, folder in house.items():
        top = room_of(name)
        room = found.setdefault(top, Room(top, [], set(), folder.side))
        room.uses |= {room_of(use) for use in folder.uses} - {top}
        if name != top:
            room.inner.append(name.removeprefix(top)[1:])
    for room in found.values():
        room.uses &= set(found)

    def floor(name: str, way: tuple[str, ...]) -> int:
        uses = [use for use in found[name].uses if use not in way]
        return 1 + max((floor(use, (*way, name)) for use in uses), default=-1)

    for name, room in found.items():
        room.floor = floor(name, ())
    ground = 1 + max(room.floor for room in found.values() if room.side == "C")
    for room in found.values():
        room.floor += ground if room.side == "recording" else 0
    for room in found.values():  # what works over both wings stands above both
        if room.side == "top":
            room.floor = 1 + max((found[use].floor for use in room.uses), default=0)
    return found


def arrows(found: dict[str, Room]) -> list[tuple[str, str]]:
    """The uses that do not follow from others."""
    far: dict[str, set[str]] = {}
    for name in sorted(found, key=lambda name: found[name].floor):
        far[name] = found[name].uses.union(*(far.get(use, set()) for use in found[name].uses))
    return [
        (name, use)
        for name, room in found.items()
        for use in sorted(room.uses)
        if not any(use in far[other] for other in room.uses - {use})
    ]


def drawing(house: dict[str, Folder]) -> str:
    """The house as SVG: C on the left, Python that records above it, what reads on the right."""
    found = rooms(house)
    left = [room for room in found.values() if room.side in ("C", "recording")]
    right = [room for room in found.values() if room.side == "reading"]
    top = [room for room in found.values() if room.side == "top"]
    highest = max(room.floor for room in found.values())
    place: dict[str, tuple[float, float]] = {}

    def rows_of(wing: list[Room]) -> dict[int, list[Room]]:
        rows: dict[int, list[Room]] = {}
        for room in sorted(wing, key=lambda room: room.name):
            rows.setdefault(room.floor, []).append(room)
        return rows

    def span_of(rows: dict[int, list[Room]]) -> float:
        return max(len(row) for row in rows.values()) * (WIDTH + GAP) - GAP

    def put(rows: dict[int, list[Room]], start: float, span: float) -> None:
        for floor, row in rows.items():
            x = start + (span - (len(row) * (WIDTH + GAP) - GAP)) / 2
            for number, room in enumerate(row):
                y = MARGIN + (highest - floor) * FLOOR
                place[room.name] = (x + number * (WIDTH + GAP), y)

    wings = [rows_of(left), rows_of(right)]
    spans = [span_of(wing) for wing in wings]
    put(wings[0], MARGIN, spans[0])
    put(wings[1], MARGIN + spans[0] + 4 * GAP, spans[1])
    whole = spans[0] + 4 * GAP + spans[1]
    put(rows_of(top), MARGIN, whole)
    bottom = MARGIN + highest * FLOOR + HEIGHT + 2 * GAP
    wide, high = whole + 2 * MARGIN, bottom + HEIGHT + MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:.0f} {high:.0f}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="13" text-anchor="middle">',
        f'<rect width="{wide:.0f}" height="{high:.0f}" fill="#ffffff"/>',
    ]
    for name, use in arrows(found):
        (x1, y1), (x2, y2) = place[name], place[use]
        x1, x2, y1 = x1 + WIDTH / 2, x2 + WIDTH / 2, y1 + HEIGHT
        middle = (y1 + y2) / 2
        lines.append(
            f'<path d="M{x1:.0f} {y1:.0f}C{x1:.0f} {middle:.0f} {x2:.0f} {middle:.0f} '
            f'{x2:.0f} {y2:.0f}" fill="none" stroke="#777777"/>'
        )
    for name, (x, y) in place.items():
        room = found[name]
        says = house[name].says if name in house else ""
        middle = y + HEIGHT / 2 + (-3 if room.inner else 5)
        lines.append(
            f'<g><title>{escape(says)}</title><rect x="{x:.0f}" y="{y:.0f}" width="{WIDTH}" '
            f'height="{HEIGHT}" rx="4" fill="{COLOURS[room.side]}" stroke="#555555"/>'
            f'<text x="{x + WIDTH / 2:.0f}" y="{middle:.0f}" font-weight="bold">'
            f"{escape(name)}</text>"
        )
        if room.inner:
            inner = " · ".join(name.rpartition(".")[2] for name in room.inner)
            size = min(11.0, 1.9 * WIDTH / len(inner))
            lines.append(
                f'<text x="{x + WIDTH / 2:.0f}" y="{middle + 16:.0f}" font-size="{size:.1f}">'
                f"{escape(inner)}</text>"
            )
        lines.append("</g>")
    lines.append(
        f'<rect x="{MARGIN}" y="{bottom:.0f}" width="{whole:.0f}" height="{HEIGHT}" '
        'rx="4" fill="#fff7cf" stroke="#555555"/>'
        f'<text x="{wide / 2:.0f}" y="{bottom + HEIGHT / 2 + 5:.0f}">'
        "the recording file: native/log writes it, recording.format reads it</text>"
    )
    return "\n".join([*lines, "</svg>", ""])


def table(house: dict[str, Folder]) -> str:
    """The folders in Markdown, C first, from the ground up."""
    order = sorted(house, key=lambda name: (house[name].side != "C", name))
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
