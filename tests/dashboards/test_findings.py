"""Rows, order and search of findings, and all about one."""

import re
from pathlib import Path

import pytest
from support.screens import app_of, opened, press, screen_text
from support.traces import Program
from tlmem.dashboards.model import loading
from tlmem.dashboards.model.findings import (
    SORTS,
    finding_blocks,
    finding_rows,
    markdown,
    stack_block,
)
from tlmem.dashboards.model.loading import Loaded
from tlmem.dashboards.screens.findings import as_text

from tlmem.analysis import analyse
from tlmem.analysis.ledger.history import history
from tlmem.analysis.model import Finding, Holder, StackFrame
from tlmem.events import Device
from tlmem.recording.format.chains import ChainStep, StepKind
from tlmem.report.kinds import NAMES

FINDINGS = (
    Finding("growing-site", "error", 5, 1000, "grows", site=StackFrame("/a/b.py", 3, "f")),
    Finding("floating", "warning", 900, 10, "floats", holders=(Holder("scope", "epoch"),)),
    Finding("live-at-end", "info", 7, 9_000_000, "lives", site=StackFrame("/a/a.py", 4, "g")),
)


LINE = StackFrame("/a/b.py", 3, "f")
SAME_LINE = (
    FINDINGS[0],
    Finding("use-after-free", "error", 1, 8, "used", site=LINE),
    Finding("cache-only-grows", "warning", 5, 1000, "kept by 'cache'", site=LINE),
    Finding("live-at-end", "info", 5, 1000, "lives", site=LINE),
)


def order(**options: object) -> list[int]:
    return [row.index for row in finding_rows(FINDINGS, **options)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("severity", [0, 1, 2]),
        ("bytes", [2, 0, 1]),
        ("objects", [1, 2, 0]),
        ("kind", [1, 0, 2]),
        ("place", [2, 0, 1]),
        ("growth", [0, 1, 2]),
    ],
)
def test_findings_are_sorted(sort: str, expected: list[int]) -> None:
    assert order(sort=sort) == expected
    assert sort in SORTS


@pytest.mark.parametrize(
    ("search", "expected"),
    [("FLOAT", [1]), ("a.py", [2]), ("epoch", [1]), ("grows", [0]), ("zebra", []), ("", [0, 1, 2])],
)
def test_a_search_looks_at_kind_place_holder_and_evidence(search: str, expected: list[int]) -> None:
    assert order(search=search) == expected


def test_what_was_found_of_one_line_is_one_row_but_for_misuse() -> None:
    rows = finding_rows(SAME_LINE)

    assert [(row.index, row.others) for row in rows] == [(0, (2, 3)), (1, ())]
    assert [row.index for row in finding_rows(SAME_LINE, search="cache")] == [0]
    headings = [block.heading for block in finding_blocks(SAME_LINE[0], others=SAME_LINE[2:])]
    assert headings == [
        "‼ error: never freed at b.py:3 · growing-site",
        "! warning: cache never shrinks at b.py:3 · cache-only-grows",
        "Fix",
        "Alive when judged",
    ]


def test_every_kind_that_the_reference_names_has_a_plain_name() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "json.md").read_text()
    row = next(line for line in page.splitlines() if line.startswith("| `finding.kind` |"))
    kinds = set(
        re.findall(r"`([a-z]+(?:-[a-z]+)+|retained|gathered|floating|fragmentation|misuse)`", row)
    )

    assert kinds == set(NAMES)
    assert all(len(name) <= 30 and name not in NAMES for name in NAMES.values())


def test_source_is_coloured_and_frames_of_libraries_are_dim() -> None:
    mine = StackFrame("/a/b.py", 3, "f", lambda *_: "return x + 1")
    library = StackFrame("/lib/site-packages/numpy/pad.py", 7, "pad", lambda *_: "pass")
    text = as_text([stack_block("Stack", [mine, library], mine)], lambda file: file == "/a/b.py")
    styles = {text.plain[span.start : span.end].strip(): str(span.style) for span in text.spans}

    assert styles["return"] not in ("", "bold", "dim")
    assert styles["> /a/b.py:3 in f"] == "bold"
    assert styles["/lib/site-packages/numpy/pad.py:7 in pad"] == styles["pass"] == "dim"


def test_severities_can_be_left_out() -> None:
    assert order(severities=("error", "warning")) == [0, 1]


def test_a_severity_is_told_by_sign_and_word() -> None:
    assert [row.severity for row in finding_rows(FINDINGS)] == ["‼ error", "! warning", "· info"]
    assert finding_rows(FINDINGS)[1].place == "–"


def test_a_finding_is_told_with_holder_stacks_and_history(loaded: Loaded) -> None:
    finding = loaded.analysis.findings[0]
    life = history(loaded.recording, str(finding.object))
    blocks = {block.heading: "\n".join(block.lines) for block in finding_blocks(finding, life)}

    assert list(blocks) == [
        "‼ error: never freed at train.py:12 · growing-site",
        "Held by",
        "Still alive, of the objects allocated in each part of the run",
        "Stack",
        "reader acquired object 1, never released",
        "History of object 1",
    ]
    assert (
        "reader: 360, acquired at train.py:21 in Reader.take; object 1 since" in blocks["Held by"]
    )
    assert "> /home/ada/train.py:12 in train" in blocks["Stack"]
    assert (
        "> /home/ada/train.py:21 in Reader.take"
        in blocks["reader acquired object 1, never released"]
    )
    assert "acquire     2" in blocks["History of object 1"]
    assert "never released" in blocks["History of object 1"]


@pytest.mark.parametrize(("width", "times"), [(96, 8), (70, 8), (60, 4), (40, 3), (1, 1)])
def test_the_table_of_cohorts_is_as_wide_as_there_is_room(
    loaded: Loaded, width: int, times: int
) -> None:
    blocks = finding_blocks(loaded.analysis.findings[0], None, width)
    (table,) = [block for block in blocks if block.heading.startswith("Still alive")]
    heads = table.lines[0].replace(" ms", "").split()

    assert len(table.lines) == 9 and table.code
    assert len(heads) == len(["allocated", "made", "at"]) + times
    assert heads[-1] == "938"
    assert width == 1 or max(map(len, table.lines)) <= width


def test_a_cure_is_told_where_there_is_one(loaded: Loaded) -> None:
    over_retained = next(f for f in loaded.analysis.findings if f.kind == "over-retained")

    assert "Fix" in [block.heading for block in finding_blocks(over_retained)]


def test_stacks_of_misuse_have_source_lines() -> None:
    here = (StackFrame("/a/made.py", 2, "main", lambda file, line, function: f"{function}.use()"),)
    finding = Finding(
        "use-after-free", "error", 1, 0, "used", 4, here[0], here, allocated=here, freed=here
    )
    blocks = {block.heading: block.lines for block in finding_blocks(finding)}

    for heading in ("Stack", "Allocated at", "Freed at"):
        assert blocks[heading][-1].strip() == "main.use()"


def test_no_name_acts_in_an_issue() -> None:
    nasty = "`` ``` @octocat <img src=x> [x](https://evil.example) #1"
    here = StackFrame(f"/a/{nasty}.py", 3, nasty, lambda file, line, function: "```\n```")
    text = markdown(
        Finding("floating", "warning", 1, 1, nasty, site=here, stack=(here,)), None, "x"
    )
    outside = re.sub(r"^(`{3,})text\n.*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)

    for part in ("`", "@octocat", "<img", "[x]", "://", "#1"):
        assert part not in outside.replace("####", "").replace("&#", "")


def test_markdown_can_be_put_into_an_issue(loaded: Loaded) -> None:
    finding = loaded.analysis.findings[0]
    text = markdown(finding, history(loaded.recording, "1"), "story.tlm")

    assert text.startswith("### ‼ error: never freed at train.py:12 · growing-site\n")
    assert text.count("```") % 2 == 0 and "#### Stack\n\n```text\n" in text
    assert text.endswith("From story.tlm.\n")


# ---- holders of PyTorch's tensors ----


@pytest.mark.asyncio
async def test_a_list_of_losses_is_shown_as_a_holder_with_its_graph(
    story: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = [
        ChainStep(StepKind.LOCAL, "main\n/home/user/program.py\n12", "history"),
        ChainStep(StepKind.LIST, "list", "[]", 300),
        ChainStep(StepKind.GRAPH, "NllLossBackward0"),
    ]
    analysis = analyse(keeping(chain).recording())
    monkeypatch.setattr(loading, "analyse", lambda recording: analysis)
    app = app_of(story)
    async with opened(app, (120, 60)) as pilot:
        await press(pilot, "3", "slash", *"kept-graph", "enter", "down")
        text = screen_text(app)
        await press(pilot, "c")
    detail = " ".join(text.replace("│", " ").split())

    assert "kept with its autograd graph at program.py:30 · kept-graph" in detail
    assert "Held by list 'history' (local variable of main() at program.py:12, 300 items)" in detail
    assert "with the autograd graph (NllLossBackward0)" in detail
    assert "history -> list of 300[] -> tensor of NllLossBackward0" in detail
    assert "tensor of NllLossBackward0" in app.clipboard


def keeping(chain: list[ChainStep]) -> Program:
    """A program that keeps a tensor of each step, made at line 30, by a chain that was seen."""
    program, losses = Program(), []
    for step in range(400):
        program.alloc(20, 16_000, Device.TORCH)
        losses.append(program.alloc(30, 4_000, Device.TORCH))
        program.temporary(90)
        program.wait(1_000_000)
        if step == 300:
            program.snapshot((chain, losses, 1.0))
    return program
