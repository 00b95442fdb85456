"""The report as one page for a browser: everything is in it, and nothing is loaded from anywhere.

In: ``report.summary.Summary``. Out: HTML.
May import: units, recording, analysis, report.
Third-party: nothing.

See also: ``sections`` for what findings look like, ``figures`` for pictures, ``flame`` for the
flame graph, ``markup`` for elements that escape what stands in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources

from tlmem.analysis.lifetimes import lifetimes
from tlmem.report import text
from tlmem.report.heap import HEAP_FOLDED, HEAP_MEASURES, HEAP_NOTE, heap_tree
from tlmem.report.html import sections
from tlmem.report.html.figures import draw_figures
from tlmem.report.html.flame import flame_graph, flame_of
from tlmem.report.html.markup import Markup, element
from tlmem.report.plots import PlotView
from tlmem.report.site_sums import line_totals
from tlmem.report.summary import Process, Summary

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
"""What a browser may do for the page: nothing but run what stands in it."""
MOST_LINES = 300
MOST_IN_FULL = 6
"""Processes of a family with pictures; of others there is the report as text."""


def render(summary: Summary) -> str:
    """The whole page, with a line feed at its end."""
    title = title_of(summary)
    return page(title, parts(summary, title))


def page(title: str, content: Sequence[Markup]) -> str:
    """A page of some content, with the style and the script that every page has."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("title", title),
        element("style", part("page.css")),
    )
    body = element("body", *content, element("script", part("page.js")))
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def parts(summary: Summary, title: str) -> list[Markup]:
    """What stands in the page, from above."""
    made = [element("h1", title), sections.verdict(summary.verdict)]
    if not summary.is_family:
        return [*made, *process_parts(summary.processes[0], "p0")]
    made.append(element("pre", text.totals_block(summary.totals, "All processes together")))
    if summary.attribution.known:
        together = text.attribution_block(summary.attribution, summary.growth, summary.peak)
        made.append(element("pre", together))
    for number, process in enumerate(in_order(summary)):
        name = process.worker or process.recording.info.get("script", "").rpartition("/")[2]
        full = number < MOST_IN_FULL
        shown = process_parts(process, f"p{number}") if full else [as_text(process)]
        made.append(
            element(
                "details",
                element(
                    "summary",
                    f"{process.identity.name} {name}: {process.analysis.verdict.outcome}",
                ),
                sections.verdict(process.analysis.verdict),
                *shown,
                open=number == 0,
                class_="process",
            )
        )
    return made


def in_order(summary: Summary) -> list[Process]:
    """The process that the verdict is about, then the others as they come."""
    return [summary.worst, *(p for p in summary.processes if p is not summary.worst)]


def process_parts(process: Process, prefix: str) -> list[Markup]:
    """Everything about one process."""
    recording, found = process.recording, process.analysis
    view = PlotView.of(recording, found)
    judged_ns = lifetimes(recording, view.places).judged_ns
    return [
        sections.about(recording),
        element("h2", f"Findings ({len(found.findings)})"),
        sections.findings(found.findings),
        element("h2", "Pictures"),
        *draw_figures(view, prefix),
        element("h2", "Where resident memory is"),
        sections.attribution(process),
        element("h2", "Which stacks memory came from"),
        flame_graph(recording, judged_ns),
        element("h2", "Lines"),
        element("p", f"{text.alive_title(judged_ns)}.", class_="quiet"),
        sections.lines(line_totals(recording, MOST_LINES, judged_ns)),
        *heap_parts(process),
        as_text(process),
    ]


def heap_parts(process: Process) -> list[Markup]:
    """What was sampled of the heap; nothing in recordings made without ``--heap``."""
    if not process.analysis.heap:
        return []
    notes = [f"{text.when_judged(process.analysis.judged_ns).capitalize()}. {HEAP_NOTE}"]
    notes += [HEAP_FOLDED] if process.recording.folded_events else []
    return [
        element("h2", "Sampled heap"),
        *(element("p", note, class_="quiet") for note in notes),
        flame_of(heap_tree(process.recording), HEAP_MEASURES),
        *(sections.heap(held) for held in process.analysis.heap),
    ]


def as_text(process: Process) -> Markup:
    """The report for people, folded: what it says beyond the page is not lost."""
    blocks = "\n\n".join(text.process_blocks(process))
    return element("details", element("summary", "The report as text"), element("pre", blocks))


def title_of(summary: Summary) -> str:
    """What was recorded, for the title of the window."""
    recording = summary.processes[0].recording
    script = recording.info.get("script", "").rpartition("/")[2]
    return f"tlmem: {script or str(recording.path).rpartition('/')[2]}"


def part(name: str) -> Markup:
    """The style or the script of the page."""
    return Markup(resources.files(__package__).joinpath(name).read_text(encoding="utf-8"))
