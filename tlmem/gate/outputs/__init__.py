"""How a decision is written down: one format a file. ``FORMATS`` maps names to functions."""

from __future__ import annotations

from collections.abc import Callable

from tlmem.gate.checked import Checked
from tlmem.gate.outputs import github, json, junit, markdown, sarif, text

FORMATS: dict[str, Callable[[Checked], str]] = {
    "text": text.render,
    "json": json.render,
    "markdown": markdown.render,
    "junit": junit.render,
    "github": github.render,
    "sarif": sarif.render,
}
"""Name of a format -> the function that writes it."""
