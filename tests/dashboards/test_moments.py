"""The screen of the moment: tables add up, keys lead through moments, roles, modules, memories."""

from pathlib import Path

import pytest
from support import training
from support.screens import app_of, opened, press, screen_text, settle
from tlmem.dashboards.app import TlmemApp
from tlmem.dashboards.model.bars import share_bar
from tlmem.dashboards.model.loading import Loaded
from tlmem.dashboards.model.moments import LINE, MODULE, ROLE, MomentShown

from tlmem.units import parse_bytes

UNIT = 16_384


@pytest.fixture(scope="module")
def peak(net: Path) -> MomentShown:
    """The peak of the net."""
    return Loaded(net).moments.shown()


def column(found: MomentShown, table: str, head: str) -> list[str]:
    """The texts below a head."""
    shown = found.tables[table]
    return [row[shown.heads.index(head)] for row in shown.rows]


# ---- the model ----


def test_roles_have_bytes_shares_and_parts(peak: MomentShown) -> None:
    rows = {row[3]: row[:3] for row in peak.tables[ROLE].rows}

    assert peak.by == ROLE and peak.memories == (peak.memory,) == ("host",)
    assert peak.tables[ROLE].heads[:4] == ("bytes", "share", "blocks", "role")
    assert rows["activations"] == ("524 kB", "████▉     62%", "8")
    assert rows["gradients"][0] == "0 B"
    assert "h.0 to h.3 131 kB each" in column(peak, ROLE, "largest parts")
    assert peak.sentence.startswith("Peak 852 kB in 24 blocks, ")
    assert "step 2 of 4, in backward of h.3 (train.py:70)" in peak.sentence


@pytest.mark.parametrize("table", [ROLE, LINE])
def test_a_table_adds_up_to_the_peak(peak: MomentShown, table: str) -> None:
    total = sum(parse_bytes(text) for text in column(peak, table, "bytes"))
    blocks = sum(int(text) for text in column(peak, table, "blocks"))

    assert total == pytest.approx(852_000, rel=0.01)
    assert blocks == 24


def test_modules_are_a_tree_and_the_rest_is_of_none(peak: MomentShown) -> None:
    names = column(peak, MODULE, "module")
    bytes_of = dict(zip(names, column(peak, MODULE, "bytes"), strict=True))

    assert names[:4] == ["Net", "  h", "    h.0", "      h.0.fc"]
    assert (bytes_of["Net"], bytes_of["    h.0"], bytes_of["      h.0.fc"]) == (
        "786 kB",
        "180 kB",
        "115 kB",
    )
    assert names.count("(of no known module)") == 3
    assert column(peak, MODULE, "roles")[-1] == "kept by Python"


def test_what_would_lower_it_has_numbers(peak: MomentShown) -> None:
    assert peak.lower[1] == (
        "checkpoint h.* (4 modules, each by itself): peak 688 kB, 164 kB (19%) lower; "
        "then it is in backward"
    )


def test_without_pytorch_there_are_lines_only(story: Path) -> None:
    found = Loaded(story).moments.shown()

    assert found.by == LINE
    assert column(found, LINE, "line")[0] == "train.py:12 train"
    assert list(found.tables[ROLE].rows) == list(found.tables[MODULE].rows) == []


@pytest.mark.parametrize(
    ("share", "bar"), [(0, "    "), (0.5, "██  "), (1, "████"), (0.55, "██▎ "), (7, "████")]
)
def test_bars_are_as_long_as_shares(share: float, bar: str) -> None:
    assert share_bar(share, 4) == bar


def test_a_recording_without_objects_has_nothing_at_its_peak(tmp_path: Path) -> None:
    loop = training.Loop()
    loop.mark("nothing")
    found = Loaded(loop.write(tmp_path / "empty.tlm")).moments.shown()

    assert found.sentence == "Nothing was allocated."
    assert list(found.tables[LINE].rows) == []


# ---- the screen ----


@pytest.mark.asyncio
async def test_keys_lead_from_roles_to_modules_lines_and_the_timeline(net: Path) -> None:
    app = app_of(net)
    async with opened(app) as pilot:
        await press(pilot, "w")
        text = screen_text(app)
        assert "[w Moment]" in text and "optimizer state" in text and "Peak 852 kB" in text
        assert "What would lower it" in text and "checkpoint h.*" in text
        await press(pilot, "m")
        assert "h.0.fc" in screen_text(app) and "optimizer state" in screen_text(app)
        await press(pilot, "l")
        assert "train.py:80 main" in screen_text(app)
        await press(pilot, "r", "d")
        assert any("one memory" in note.message for note in app._notifications)
        await press(pilot, "enter")
        assert app.current_mode == "timeline"

    assert app.view.cursor_ns == Loaded(net).moments.shown().time_ns


def test_rows_are_filtered_by_words_and_sizes(story: Path, peak: MomentShown) -> None:
    found = Loaded(story).moments.shown()

    assert found.matching(LINE, "") == [0, 1, 2, 3]
    assert found.matching(LINE, "READER") == [0]
    assert found.matching(LINE, ">20kB <1MB") == [1]
    assert found.matching(LINE, "train.py:1 <20kB step") == [2]
    assert found.matching(LINE, ">1zebra") == []
    for table in (ROLE, MODULE, LINE):
        assert len(peak.sizes[table]) == len(peak.tables[table].rows)
    assert [peak.tables[ROLE].rows[at][3] for at in peak.matching(ROLE, ">500kB")] == [
        "activations"
    ]


@pytest.mark.asyncio
async def test_a_filter_leaves_the_line_of_the_cursor_right(story: Path) -> None:
    app = app_of(story)
    async with opened(app) as pilot:
        await press(pilot, "w", "slash", *"pool", "enter")
        text = " ".join(screen_text(app).split())
        assert "1 of 4 rows with 'pool'" in text and "train.py:10 in train" in text
        await press(pilot, "enter")
        assert app.current_mode == "timeline" and "train.py:10 › 1 object" in screen_text(app)
        await press(pilot, "w", "escape")
        assert "rows with" not in screen_text(app)


@pytest.mark.asyncio
async def test_roles_of_a_program_without_pytorch_are_not_there(story: Path) -> None:
    app = app_of(story)
    async with opened(app) as pilot:
        await press(pilot, "w")
        assert "train.py:12 train" in screen_text(app)
        await press(pilot, "r")
        assert "no roles" in screen_text(app) and "l shows lines" in screen_text(app)


@pytest.mark.asyncio
async def test_each_memory_and_each_process_has_its_own_peak(net: Path, tmp_path: Path) -> None:
    loop = training.Loop()
    loop.alloc(training.at(3), 3_000, device=training.NUMPY)
    for number in (0, 1):
        weights = loop.alloc(training.init(), 7_000, device=5, accelerator=number)
        loop.free(loop.alloc(training.forward(), 90_000 + weights % 7, device=5), training.at(9))
    app = TlmemApp([Loaded(loop.write(tmp_path / "two.tlm")), Loaded(net)])
    async with opened(app, (120, 30)) as pilot:
        await press(pilot, "w")
        assert "Peak of accelerator:0 " in screen_text(app)
        assert "memory 1 of 3 (d)" in screen_text(app)
        await press(pilot, "d")
        assert "Peak of accelerator:1 7.00 kB" in screen_text(app)
        await press(pilot, "d")
        assert "Peak 3.00 kB in 1 block" in screen_text(app)
        await press(pilot, "d")
        assert "memory 1 of 3 (d)" in screen_text(app)
        await press(pilot, "p")
        await settle(pilot)
        assert "Peak 852 kB" in screen_text(app) and "memory 1" not in screen_text(app)


@pytest.mark.asyncio
async def test_a_moment_shows_what_one_thread_allocated(story: Path) -> None:
    app = app_of(story)
    async with opened(app) as pilot:
        await press(pilot, "w")
        every = screen_text(app)
        await press(pilot, "t")
        first = screen_text(app)
        await press(pilot, "t")
        second = screen_text(app)
        await press(pilot, "t")
        again = screen_text(app)

    assert "allocated by thread" not in every and again == every
    assert "allocated by thread 1, main (t)" in first and "train.py:12" in first
    assert "allocated by thread 2, without a name (t)" in second
    assert "nothing was alive" in second
