"""The docs as a site: which pages there are, in what order, and what of the repository they link.

``mkdocs.yml`` names this as its hook. A link that leads out of ``docs`` (to the README, to an
example in C) leads to a copy of that file in the site, so that a link is good here when it is good
in the repository. Covers: navigation, copies, their links. Does not cover: how the site looks.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
DOCS = "docs"
COPIES = "repository"
"""Folder of the site for files that are not below ``docs``."""
START = ["index.md", "how-to/record.md", "how-to/pytorch.md", "how-to/gate.md", "how-to/fleet.md"]
"""What a new reader is shown first, in this order."""
SECTIONS = {
    "Start": START,
    "How to": ["how-to/*.md", "images/screens/README.md"],
    "Findings": ["findings.md", "findings/*.md"],
    "Reference": ["reference/*.md", "format.md"],
    "Evidence": ["*.md"],
    "Design": ["design.md", "decisions/*.md"],
}
"""Pages of each section; a page belongs to the first one with its name, and stands in one only."""
LAST = "Evidence"
"""Takes what no other section names."""
LINK = re.compile(r"(\]\()([^)#\s:]+)(#[^)\s]*)?(\))")
CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Puts every page into the navigation, so that none is forgotten."""
    left = {path.relative_to(ROOT / DOCS).as_posix() for path in (ROOT / DOCS).rglob("*.md")}
    pages: dict[str, list[str]] = {}
    for section in sorted(SECTIONS, key=lambda name: name == LAST):
        found = []
        for pattern in SECTIONS[section]:
            named = sorted(path for path in left if _matches(path, pattern))
            if not named:
                raise PluginError(f"No page is left for {pattern} in docs/site_pages.py; mend it.")
            found += named
            left -= set(named)
        pages[section] = found
    if left:
        raise PluginError(f"No section of docs/site_pages.py has {min(left)}; name its folder.")
    config.nav = [{section: pages[section]} for section in SECTIONS]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds what pages link of the rest of the repository, and what those link in turn."""
    waiting = [f"{DOCS}/{file.src_uri}" for file in files.documentation_pages()]
    seen = set(waiting)
    while waiting:
        page = waiting.pop()
        for _, path, _, _ in _links(page):
            target = posixpath.normpath(posixpath.join(posixpath.dirname(page), path))
            if target in seen or _is_below_docs(target) or not (ROOT / target).is_file():
                continue
            seen.add(target)
            name = f"{COPIES}/{target}"
            content = (ROOT / target).read_bytes()
            files.append(File.generated(config, name, content=content))
            if target.endswith(".md"):
                waiting.append(target)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Leads links between pages and copies to where both are in the site."""
    here = page.file.src_uri
    origin = here.removeprefix(f"{COPIES}/") if _is_copy(here) else f"{DOCS}/{here}"

    def moved(found: re.Match[str]) -> str:
        before, path, anchor, after = found.groups()
        target = posixpath.normpath(posixpath.join(posixpath.dirname(origin), path))
        inside = _is_below_docs(target)
        if inside and not _is_copy(here):
            return found[0]
        place = target.removeprefix(f"{DOCS}/") if inside else f"{COPIES}/{target}"
        return f"{before}{posixpath.relpath(place, posixpath.dirname(here))}{anchor or ''}{after}"

    return _outside_code(markdown, lambda text: LINK.sub(moved, text))


def _matches(path: str, pattern: str) -> bool:
    """As in a shell: ``*`` stands for no ``/``."""
    return re.fullmatch(re.escape(pattern).replace(r"\*", "[^/]*"), path) is not None


def _is_copy(uri: str) -> bool:
    return uri.startswith(f"{COPIES}/")


def _is_below_docs(path: str) -> bool:
    return path.startswith(f"{DOCS}/")


def _links(page: str) -> list[tuple[str, str, str, str]]:
    return LINK.findall(CODE.sub("", (ROOT / page).read_text(encoding="utf-8")))


def _outside_code(text: str, change) -> str:
    """A text with all changed but its blocks of code."""
    made, at = [], 0
    for block in CODE.finditer(text):
        made += [change(text[at : block.start()]), block[0]]
        at = block.end()
    return "".join([*made, change(text[at:])])
