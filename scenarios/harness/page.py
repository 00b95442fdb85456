"""Parts of a page that commands write, between marks, so that each replaces its own alone."""

from __future__ import annotations

from pathlib import Path


def write_part(page: Path, name: str, text: str) -> None:
    """Puts a text between the marks of the part ``name``; at the end when there are none yet."""
    first, last = f"<!-- begin {name} -->\n", f"<!-- end {name} -->\n"
    whole = page.read_text(encoding="utf-8") if page.exists() else ""
    if first not in whole:
        whole = f"{whole.rstrip()}\n\n{first}{last}".lstrip()
    before, _, rest = whole.partition(first)
    after = rest.partition(last)[2]
    page.write_text(f"{before}{first}{text.strip()}\n{last}{after}", encoding="utf-8")
