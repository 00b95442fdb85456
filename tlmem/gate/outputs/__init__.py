"""A decision in every format, one format per file; ``FORMATS`` maps names to functions.

In: ``gate.decision.Checked``. Out: a text.
May import: units, recording, analysis, report, gate.
Third-party: numpy.
"""

from __future__ import annotations

from collections.abc import Callable

from tlmem.gate.decision import Checked
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
