"""The report as one page for a browser: everything is in it, and nothing is loaded from anywhere.

In: ``report.summary.Summary``. Out: HTML.
May import: units, recording, analysis, report.
Third-party: nothing.

See also: ``sections`` for what findings look like, ``lives`` for single objects, ``figures`` and
``heat`` for pictures, ``flame`` for the flame graph, ``markup`` for elements that escape what
stands in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources

from tlmem.analysis.lifetimes import lifetimes
from tlmem.analysis.model import Finding
from tlmem.analysis.places import Places
from tlmem.recording.memory_curves import memory_curves
from tlmem.recording.reader import Recording
from tlmem.report import text
from tlmem.report.heap import HEAP_MEASURES, HEAP_NOTE, heap_folded, heap_tree
from tlmem.report.html import sections
from tlmem.report.html.figures import draw_figures
from tlmem.report.html.flame import flame_graph, flame_of
from tlmem.report.html.heat import heat_figure
from tlmem.report.html.lives import lives
from tlmem.report.html.markup import Markup, element
from tlmem.report.object_lives import Chosen, chosen_objects
from tlmem.report.object_lives import lives as lives_of
from tlmem.report.plots import PlotView
from tlmem.report.plots.processes import RESIDENT, TRACKED, ProcessRow
from tlmem.report.site_sums import line_totals
from tlmem.report.summary import Process, Summary
from tlmem.report.thread_sums import ThreadTotals, thread_totals

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
"""What a browser may do for the page: nothing but run what stands in it."""
MOST_LINES = 300
MOST_IN_FULL = 6
"""Processes of a family with pictures; of others there is the report as text."""
CURVE_POINTS = 120
"""Parts of the time in the heat map of a family."""


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
    if not summary.is_family:
        return [element("h1", title), *process_parts(summary.processes[0], "p0")]
    made = [element("h1", title), sections.verdict(summary.verdict)]
    made.append(element("pre", text.totals_block(summary.totals, "All processes together")))
    if summary.attribution.known:
        together = text.attribution_block(summary.attribution, summary.growth, summary.peak)
        made.append(element("pre", together))
    if (figure := memory_of_each(summary)) is not None:
        made += [element("h2", "Memory of each process"), figure]
    for number, process in enumerate(in_order(summary)):
        name = process.worker or process.recording.info.get("script", "").rpartition("/")[2]
        full = number < MOST_IN_FULL
        judged = sections.verdict(process.analysis.verdict)
        shown = process_parts(process, f"p{number}") if full else [judged, as_text(process)]
        made.append(
            element(
                "details",
                element(
                    "summary",
                    f"{process.identity.name} {name}: {process.analysis.verdict.outcome}",
                ),
                *shown,
                open=number == 0,
                class_="process",
                id=f"process-{number}",
            )
        )
    return made


def in_order(summary: Summary) -> list[Process]:
    """The process that the verdict is about, then the others as they come."""
    return [summary.worst, *(p for p in summary.processes if p is not summary.worst)]


def memory_of_each(summary: Summary) -> Markup | None:
    """The heat map of a family, from the begin of its first process on."""
    began_ns = min(process.recording.created_unix_ns for process in summary.processes)
    curves = [memory_curves(each.recording, CURVE_POINTS) for each in summary.processes]
    resident = all(curve.resident for curve in curves)
    rows = [
        ProcessRow(
            process.identity.short,
            (process.recording.created_unix_ns - began_ns) / 1e9,
            process.recording.seconds,
            curve.resident if resident else curve.tracked,
        )
        for process, curve in zip(summary.processes, curves, strict=True)
    ]
    order = in_order(summary)
    targets = [f"process-{order.index(process)}" for process in summary.processes]
    what = RESIDENT if resident else TRACKED
    return heat_figure(rows, targets, what, "the begin of the first process")


def process_parts(process: Process, prefix: str) -> list[Markup]:
    """Everything about one process, its verdict first."""
    recording, found = process.recording, process.analysis
    view = PlotView.of(recording, found)
    judged_ns = lifetimes(recording, view.places).judged_ns
    chosen = chosen_objects(recording, found.findings, judged_ns, view.places)
    first = found.findings[0] if found.findings else None
    onward = (
        sections.ways(first, prefix, 0, chosen[0], with_place=True)
        if first and first.severity != "info"
        else None
    )
    threads = thread_totals(recording, judged_ns, view.places)
    return [
        sections.verdict(found.verdict, onward),
        sections.about(recording),
        element("h2", f"Findings ({len(found.findings)})"),
        sections.findings(found.findings, prefix, chosen),
        element("h2", "Pictures"),
        *draw_figures(view, prefix),
        element("h2", "Where resident memory is"),
        sections.attribution(process),
        element("h2", "Which stacks memory came from"),
        flame_graph(recording, judged_ns),
        *object_parts(recording, found.findings, chosen, prefix, view.places),
        *thread_parts(threads, recording.horizon_ns, judged_ns),
        element("h2", "Lines"),
        element("p", f"{text.alive_title(judged_ns)}.", class_="quiet"),
        sections.lines(line_totals(recording, MOST_LINES, judged_ns)),
        *heap_parts(process),
        as_text(process),
    ]


def object_parts(
    recording: Recording,
    findings: Sequence[Finding],
    chosen: Sequence[Sequence[Chosen]],
    prefix: str,
    places: Places,
) -> list[Markup]:
    """The lives of objects that findings lead to; nothing where they lead to none."""
    found = lives_of(recording, chosen, places)
    if not found:
        return []
    return [
        element("h2", "Single objects"),
        lives(found, findings, chosen, prefix, recording.seconds),
    ]


def thread_parts(threads: Sequence[ThreadTotals], horizon_ns: int, judged_ns: int) -> list[Markup]:
    """What each thread allocated; nothing where one allocated all."""
    if len(threads) < 2:
        return []
    return [
        element("h2", "Threads"),
        element(
            "p", f"{text.alive_title(judged_ns)}, by the thread that allocated.", class_="quiet"
        ),
        sections.threads(threads, horizon_ns),
    ]


def heap_parts(process: Process) -> list[Markup]:
    """What was sampled of the heap; nothing in recordings made without ``--heap``."""
    if not process.analysis.heap:
        return []
    notes = [f"{text.when_judged(process.analysis.judged_ns).capitalize()}. {HEAP_NOTE}"]
    notes += [folded] if (folded := heap_folded(process.recording)) else []
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
