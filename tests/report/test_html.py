"""The page of a report: whole in itself, and unbroken by whatever names a program has."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from support import training
from support.summaries import leaking, renamed

from tlmem.analysis import analyse
from tlmem.analysis.model import Holder, StackFrame
from tlmem.report import html, plots
from tlmem.report.html import figures, flame, markup
from tlmem.report.moments import moments_of
from tlmem.report.site_sums import stack_tree
from tlmem.report.summary import Process, Summary

NASTY = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&]]>--><!--"


@pytest.fixture(scope="module")
def process() -> Process:
    return leaking()


@pytest.fixture(scope="module")
def page(process: Process) -> str:
    return html.render(Summary((process,)))


class Outline(HTMLParser):
    """Elements of a page by name, with their attributes; and whether each is closed in order."""

    VOID = {"meta", "br", "input"}

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def names(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


def test_every_element_is_closed(page: str) -> None:
    assert Outline(page).open == []


def test_the_page_loads_nothing_from_anywhere(page: str) -> None:
    outline = Outline(page)
    linked = [value for _, attributes in outline.found for name, value in attributes.items()
              if name in ("src", "href", "xlink:href", "action", "data")]  # fmt: skip

    assert outline.names("link") == outline.names("img") == outline.names("iframe") == []
    assert all(value.startswith("#") for value in linked if value)
    assert "@import" not in page and "url(http" not in page
    policy = next(m["content"] for m in outline.names("meta") if m.get("http-equiv"))
    assert policy is not None and policy.startswith("default-src 'none'")


def test_names_in_pictures_are_different_and_all_there(page: str) -> None:
    named = re.findall(r'\bid="([^"]+)"', page)
    used = re.findall(r'(?:url\(|href=")#([^)"]+)', page)

    assert len(named) == len(set(named)) > 10
    assert set(used) <= set(named)


def test_pictures_take_the_colour_of_the_page(page: str) -> None:
    assert page.count("currentColor") > 20
    assert "#1b1b1b" not in page[page.index("</style>") :]


def test_the_page_says_verdict_findings_lines_and_memory(page: str) -> None:
    for part in ("✗ leak", "growing-site", "program.py:20", "16.0 MB", "Python&#x27;s heap"):
        assert part in page


def test_a_script_that_stands_in_a_name_stays_a_name(process: Process) -> None:
    frame = StackFrame(f"/home/{NASTY}.py", 3, NASTY)
    summary = renamed(
        leaking(path=f"/home/{NASTY}.tlm", info={"script": NASTY, "command": NASTY}),
        evidence=NASTY,
        site=frame,
        stack=(frame,),
        holders=(Holder("field", NASTY, frame, 3),),
    )
    outline = Outline(html.render(summary))

    assert len(outline.names("script")) == 2  # the flame graph's data and the page's own
    assert outline.names("img") == []
    assert not [a for _, attributes in outline.found for a in attributes if a.startswith("on")]


def test_data_for_scripts_comes_back_as_it_was() -> None:
    text = markup.data({"name": NASTY})

    assert "<" not in text and ">" not in text and "&" not in text
    assert json.loads(text) == {"name": NASTY}


def test_texts_are_escaped_and_markup_is_not() -> None:
    made = markup.element("p", "<b>", markup.element("i", "x"), None, class_='a"b', hidden=True)

    assert made == '<p class="a&quot;b" hidden>&lt;b&gt;<i>x</i></p>'


def test_the_flame_graph_has_every_byte(process: Process) -> None:
    tree = stack_tree(process.recording)
    data = flame.flame_data(tree)

    assert sum(node[5] for node in data["nodes"]) == process.totals["total_bytes"]
    assert sum(node[3] for node in data["nodes"]) == 2000 * 8_000
    assert all(node[0] < place for place, node in enumerate(data["nodes"]))


def test_the_slider_has_what_was_alive_at_every_moment_by_frame(process: Process) -> None:
    tree = stack_tree(process.recording)
    found = moments_of(process.recording, tree)
    objects = process.recording.objects

    assert found is not None
    node, first, last, size, count = found.rows.T
    for moment, time_ns in list(enumerate(found.times_ns.tolist()))[1::9]:
        alive = (objects.born_ns <= time_ns) & ((objects.died_ns < 0) | (objects.died_ns > time_ns))
        shown = (first <= moment) & (moment <= last)
        nodes = tree.node_of_site[objects.born_site[alive]]
        by_node = np.bincount(nodes, objects.size_bytes[alive], len(tree))
        assert np.bincount(node[shown], size[shown], len(tree)).tolist() == by_node.tolist()
        assert count[shown].sum() == alive.sum() > 0


def test_moments_are_fewer_where_there_would_be_too_many_rows(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = stack_tree(process.recording)
    monkeypatch.setattr("tlmem.report.moments.MOST_ROWS", 20)
    found = moments_of(process.recording, tree)

    assert found is not None and 1 <= len(found.rows) <= 20
    alive = found.rows[:, 2] >= len(found.times_ns) - 1
    objects = process.recording.objects
    assert found.rows[alive][:, 3].sum() == objects.size_bytes[objects.died_ns < 0].sum() > 0


def test_names_of_other_files_are_left_alone() -> None:
    svg = '<?xml?><svg viewBox="0 0 1 1" x="1"><g id="a"/><use xlink:href="#a"/></svg>'

    assert figures.embedded(svg, "p-", "label").endswith(
        '<g id="p-a"/><use xlink:href="#p-a"/></svg>'
    )


def test_a_family_has_a_part_for_each_process_and_no_two_equal_names() -> None:
    processes = tuple(leaking(pid=pid) for pid in (7, 8))
    page = html.render(Summary(processes))
    named = re.findall(r'\bid="([^"]+)"', page)

    assert "Process 7" in page and "Process 8" in page
    assert len(named) == len(set(named))
    assert Outline(page).open == []


def test_a_program_of_pytorch_has_a_picture_of_roles_and_others_do_not(
    page: str, tmp_path: Path
) -> None:
    recording = training.trained(steps=40).recorded(tmp_path / "net.tlm")
    trained = html.render(Summary((Process(recording, analyse(recording)),)))
    (picture,) = re.findall(r'<figure class="picture roles">(.*?)</figure>', trained, re.DOTALL)

    assert "picture roles" not in page
    assert f'aria-label="{figures.CAPTIONS["roles"]}"' in picture
    for name in ("Tracked memory by role", "activations 524 kB", "weights 65.5 kB"):
        assert f">{name}</text>" in picture
    assert len(picture) < 250_000
    assert Outline(trained).open == []


def test_each_kind_of_picture_has_a_caption() -> None:
    assert set(figures.CAPTIONS) == {*plots.KINDS, "roles"}


@pytest.mark.parametrize(
    ("path", "same"),
    [
        ("M 1.00012 2 \nL 3.5 2 \nL 3.5 4.25 \nL 7 9 \nz", "M1 2H3.5V4.25L7 9z"),
        ("M 0 0 L 1 0 L 2 0.001 L 3 0", "M0 0H3"),  # one level line
        ("M 0 0 L 3 0 L 1 0", "M0 0H3H1"),  # there and back
        ("M 0 0 L 0 5 L 0 5 L 4 5", "M0 0V5H4"),
        (
            "M 0 73.2 C 0.318244 73.2 -0.001 73 0.8 72.8 L 0.8 70",
            "M0 73.2C0.32 73.2 0 73 0.8 72.8V70",
        ),
        ("M 1,2 l 3,4 L 1,2 M 1 2 L 1 3", "M1 2l3 4L1 2M1 2V3"),
        ("M 1e-5 1e2 L 5 100", "M0 100H5"),
    ],
)
def test_a_path_in_fewer_letters_is_the_same(path: str, same: str) -> None:
    assert figures.shorter(path) == same
