"""Every screen driven with keys, as a new user would."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from support.screens import (
    app_of,
    live_app_of,
    opened,
    press,
    screen_text,
    settle,
    until,
    until_shown,
)
from support.story import write_story
from textual.command import CommandList, CommandPalette
from textual.pilot import Pilot
from tlmem.dashboards.app import KEYS, PAGES, TlmemApp
from tlmem.dashboards.model.call_tree import METRICS
from tlmem.dashboards.model.loading import Loaded
from tlmem.dashboards.screens.help import HelpPage, key_rows
from tlmem.dashboards.screens.live import LivePage
from tlmem.dashboards.screens.page import Page
from tlmem.dashboards.screens.sites import SitesPage
from tlmem.dashboards.screens.timeline import TimelinePage
from tlmem.dashboards.widgets.area_chart import AreaChart, LineChart
from tlmem.dashboards.widgets.prompt import GoTo
from tlmem.dashboards.widgets.screen_tabs import ScreenTabs

from tlmem.errors import DamagedRecording
from tlmem.units import format_bytes

pytestmark = pytest.mark.asyncio


async def test_the_first_screen_names_script_and_worst_line(story: Path) -> None:
    app = app_of(story)
    async with opened(app, (80, 24)):
        text = screen_text(app)

    assert "train.py" in text and "leak at train.py:12" in text
    assert "Leak at train.py:12: 360 of 360 objects" in text
    assert "1 error, 1 warning, 2 info" in text
    assert "complete" in text and "not complete" not in text


async def test_a_healthy_program_is_not_blamed_for_what_is_alive(mended: Path) -> None:
    app = app_of(mended)
    async with opened(app):
        head = screen_text(app).splitlines()[0]

    assert "✓ stable kept at train.py:10" in head


async def test_a_title_has_no_place_of_another_finding(story: Path) -> None:
    loaded = Loaded(story)
    loaded.read_events()
    loaded.analyse()
    first, *rest = loaded.analysis.findings
    without = replace(first, kind="reference-cycle", severity="info", site=None)
    loaded.__dict__["analysis"] = replace(loaded.analysis, findings=(without, *rest))

    assert loaded.worst_place() == ""


async def test_findings_are_not_said_to_be_none_before_they_are_known(
    story: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Loaded, "is_analysed", False)
    app = app_of(story)
    async with opened(app) as pilot:
        await press(pilot, "3")
        text = screen_text(app)

    assert "analysing …" in text and "othing was found" not in text


async def test_sites_and_overview_say_at_which_moment_what_is_alive_was(mended: Path) -> None:
    app = app_of(mended)
    async with opened(app) as pilot:
        overview = screen_text(app)
        await press(pilot, "4")
        sites, page = screen_text(app), app.screen
        assert isinstance(page, SitesPage) and page.stacks is not None
        total = page.stacks.root.total[METRICS.index("alive")]
        await press(pilot, "plus")
        part = screen_text(app)

    row = next(line for line in overview.splitlines() if "when judged" in line)
    assert app.loaded.alive_when_judged == (4, total)
    assert row.split()[-3:] == [*format_bytes(total).split(), "4"]
    assert "bytes alive when judged, after" in sites
    assert "bytes alive at 0.750 s" in part


@pytest.mark.parametrize("size", [(80, 24), (80, 12), (120, 40)])
async def test_a_chosen_object_is_on_screen(story: Path, size: tuple[int, int]) -> None:
    app = app_of(story)
    async with opened(app, size) as pilot:
        await press(pilot, "2", "enter", "end", "enter")
        assert chosen_lane(app) == "#1078"
        await press(pilot, "escape", "s")
        await press(pilot, "pageup", "enter")
        assert chosen_lane(app).startswith("#")
        await press(pilot, "1", "3", "enter")
        assert chosen_lane(app) == "#1"


async def go_to(pilot: Pilot, place: str) -> None:
    """Types a place after ``g``."""
    await press(pilot, "g")
    pilot.app.screen.query_one(GoTo).value = place
    await press(pilot, "enter")


def chosen_lane(app: TlmemApp) -> str:
    """The name of the lane that the cursor is on; the test fails when it is not on screen."""
    lines = [line for line in screen_text(app).splitlines() if line.startswith("▸")]
    assert len(lines) == 1
    return lines[0][1:].split()[0]


async def test_what_is_only_known_in_sums_is_said(
    story: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Loaded, "detail_from_ns", 600_000_000)
    app = app_of(story)
    async with opened(app, (140, 30)) as pilot:
        await press(pilot, "2")
        assert "before 0.60 s only what stayed alive is known" in screen_text(app)
        await press(pilot, "4")
        assert "only what stayed alive" not in screen_text(app)
        await press(pilot, "plus")
        assert "before 0.60 s only what stayed alive is known" in screen_text(app)


async def test_q_ends_it_with_exit_code_0(story: Path) -> None:
    app = app_of(story)
    async with opened(app) as pilot:
        await pilot.press("q")

    assert app.return_code == 0


@pytest.mark.parametrize("size", [(80, 24), (20, 6)])
async def test_every_screen_can_be_shown_and_resized(story: Path, size: tuple[int, int]) -> None:
    app = app_of(story)
    async with opened(app, size) as pilot:
        for number, (key, page) in enumerate(KEYS.items(), 1):
            await press(pilot, key)
            assert app.current_mode == page.NAME
            await pilot.resize_terminal(size[0] + 3 * number, size[1] + number)
            await press(pilot, "plus", "full_stop", "0")

    assert app.return_code is None


async def test_memory_of_a_family_is_shown_together_and_alone(story: Path, mended: Path) -> None:
    app = TlmemApp([Loaded(story), Loaded(mended)])
    async with opened(app, (120, 40)) as pilot:
        chart = app.screen.query_one(AreaChart)
        alone = chart.memory.values.sum(axis=0)
        await press(pilot, "a")
        assert "all 2 processes, a: one alone" in screen_text(app)
        assert chart.memory.values.sum(axis=0).max() > 1.5 * alone.max()
        await press(pilot, "a")
        assert "a: all processes together" in screen_text(app)
        assert chart.memory.values.sum(axis=0).max() == alone.max()
        await press(pilot, "a", "p")
        assert "process 2 of 2" in screen_text(app) and "all processes" in screen_text(app)


async def test_a_table_that_is_too_wide_is_moved_sideways(story: Path) -> None:
    app = app_of(story)
    async with opened(app, (60, 24)) as pilot:
        await press(pilot, "3")
        lines = screen_text(app).splitlines()
        heads = next(line for line in lines if "place" in line and "what" in line)
        assert heads.rstrip().endswith("›") and "‹" not in heads
        await press(pilot, *["right"] * 6)
        text = screen_text(app)

    assert "growing-site" in text and "‹" in text and "\n▸ " in text


async def test_a_zoom_is_followed_by_every_screen(story: Path) -> None:
    app = app_of(story)
    async with opened(app) as pilot:
        await press(pilot, "plus")
        stretch = "0.250 s to 0.750 s"
        for key, page in KEYS.items():
            await press(pilot, key)
            assert stretch in screen_text(app), page.NAME
        await press(pilot, "0")
        assert "all 1.00 s" in screen_text(app)


async def test_the_way_from_the_finding_to_the_holder_and_the_history(story: Path) -> None:
    app = app_of(story)
    async with opened(app, (100, 65)) as pilot:
        await press(pilot, "enter")
        detail = screen_text(app)
        assert "growing-site" in detail and "reader: 360, acquired at train.py:21" in detail
        assert "never released" in detail
        await press(pilot, "enter")
        assert app.current_mode == "timeline"
        text = screen_text(app)

    assert "Object 1: 65.5 kB" in text and "by reader" in text
    assert "reference count" in text


async def test_the_table_of_cohorts_fits_the_terminal_whatever_its_size(story: Path) -> None:
    app = app_of(story)
    async with opened(app, (160, 45)) as pilot:
        await press(pilot, "3")
        for size in ((160, 45), (130, 40), (80, 60), (60, 60)):
            await pilot.resize_terminal(*size)
            await settle(pilot)
            lines = [line.rstrip() for line in screen_text(app).splitlines()]
            heads = [line for line in lines if " made " in line and "objects" not in line]
            first = [line for line in lines if "40 to 152 ms" in line]

            assert heads[0].endswith("938") or heads[0].endswith("938 ms"), size
            assert first[0].endswith("45") and "to 265 ms" in lines[lines.index(first[0]) + 1], size


async def test_findings_are_sorted_searched_and_copied(story: Path) -> None:
    app = app_of(story)
    async with opened(app) as pilot:
        await press(pilot, "3", "s")
        assert "sorted by place" in screen_text(app)
        await press(pilot, "f")
        assert "4 findings at 1 of 2 places" in screen_text(app)
        await press(pilot, "f", "f", "slash", *"released")
        text = screen_text(app)
        assert "4 findings at 1 of 2 places" in text and "with 'released'" in text
        await press(pilot, "enter", "c")
        assert app.clipboard.startswith("### ‼ error: never freed at train.py:12 · growing-site")
        assert "#### ! warning: acquired, never released at train.py:12" in app.clipboard
        await press(pilot, "escape")
        assert "4 findings at 2 places" in screen_text(app)


async def test_a_line_opens_into_its_objects_and_back(story: Path) -> None:
    app = app_of(story)
    async with opened(app) as pilot:
        await press(pilot, "2")
        assert "4 lines, most bytes first" in screen_text(app)
        await press(pilot, "enter")
        assert "train.py:12 › 360 objects" in screen_text(app)
        await press(pilot, "s")
        assert "largest first" in screen_text(app)
        await press(pilot, "down", "enter")
        assert "reference count" in screen_text(app)
        await press(pilot, "escape", "escape")
        assert "4 lines, most bytes first" in screen_text(app)
        await press(pilot, "o")
        assert "all lines › 1,081 objects" in screen_text(app)


async def test_a_selected_stretch_becomes_the_one_on_screen(story: Path) -> None:
    app = app_of(story)
    async with opened(app) as pilot:
        await press(pilot, "2", "left_square_bracket", "shift+right", "right")
        assert "] ends the selection" in screen_text(app)
        await press(pilot, "right_square_bracket")

    assert app.view.start_ns == 500_000_000
    assert 500_000_000 < app.view.stop_ns < 700_000_000


async def test_the_timeline_has_the_numbers_of_the_moment_one_goes_to(story: Path) -> None:
    app = app_of(story)
    async with opened(app) as pilot:
        await press(pilot, "2")
        await go_to(pilot, "epoch 1")
        assert "s: 5.90 MB in 91 objects" in screen_text(app)
        await go_to(pilot, "0.25")
        assert isinstance(app.screen, TimelinePage)
        assert "at 0.25 s: 4.98 MB in 77 objects" in screen_text(app)
        first = next(row for row in screen_text(app).splitlines() if row[:1] == "▸")
        assert "train.py:12" in first and " 4.98 MB " in first
        await press(pilot, "right", "right", "right")
        later = next(row for row in screen_text(app).splitlines() if row[:1] == "▸")
        assert first[:26] != later[:26]
        await press(pilot, "a")
        assert "Alive " in screen_text(app) and app.current_mode == "moment"
        await go_to(pilot, "#1")
        assert isinstance(app.screen, TimelinePage) and "Object 1" in screen_text(app)


async def test_going_to_a_moment_shows_what_was_alive_then_on_every_screen(story: Path) -> None:
    app = app_of(story)
    async with opened(app, (100, 40)) as pilot:
        for key, page in KEYS.items():
            await press(pilot, key)
            await go_to(pilot, "epoch 2")
            assert app.current_mode == ("timeline" if page is TimelinePage else "moment")
        await press(pilot, "w", "1")
        await go_to(pilot, "0.3")
        text = said(app)
        assert "Alive 6.30 MB in 97 blocks, 300 ms after the start" in text
        assert "train.py:12 train" in text and "reader" in text
        assert "acquired at train.py:21" in text and "the peak is 23.6 MB" in text
        await press(pilot, "greater_than_sign")
        assert "Alive 6." in said(app) and "300 ms after" not in said(app)
        await press(pilot, "w")
        assert "Peak 23.6 MB in 363 blocks" in screen_text(app)


async def test_what_was_born_between_two_moments_is_a_generation(story: Path) -> None:
    app = app_of(story)
    async with opened(app, (100, 40)) as pilot:
        await go_to(pilot, "epoch 1..epoch 2")
        assert "Alive 5.90 MB in 90 blocks allocated after 285 ms and up to" in said(app)
        await go_to(pilot, "epoch 1..epoch 2..0.3")
        assert "in 6 blocks allocated after 285 ms" in said(app) and ", 300 ms after" in said(app)
        await press(pilot, "w", "b")
        assert any("Zoom into a stretch first" in note.message for note in app._notifications)
        await press(pilot, "plus", "b")
        assert "allocated after 150 ms and up to 650 ms" in said(app)
        await press(pilot, "b")
        assert "blocks allocated after" not in said(app)


def said(app: TlmemApp) -> str:
    """What is on screen, in one line."""
    return " ".join(screen_text(app).split())


async def test_going_nowhere_is_told(story: Path) -> None:
    app = app_of(story)
    async with opened(app, (100, 40)) as pilot:
        await press(pilot, "g", *"lunch", "enter")

        assert any("nothing to go to" in note.message for note in app._notifications)
        await press(pilot, "escape", "3")
        assert app.current_mode == "findings"


async def test_the_events_of_an_object_are_walked_through(story: Path) -> None:
    app = app_of(story)
    async with opened(app) as pilot:
        await press(pilot, "2", "enter", "enter")
        born = app.view.cursor_ns
        await press(pilot, "n", "n")
        assert app.view.cursor_ns > born
        await press(pilot, "N", "N")
        assert app.view.cursor_ns == born


async def test_the_tree_is_opened_inverted_searched_and_turned_into_flames(story: Path) -> None:
    app = app_of(story)
    async with opened(app) as pilot:
        await press(pilot, "4")
        assert "▾ <module> train.py:40" in screen_text(app)
        assert "train train.py:12" in screen_text(app)
        await press(pilot, "left")
        assert "train train.py:12" not in screen_text(app)
        await press(pilot, "r")
        assert "callers below" in screen_text(app)
        await press(pilot, "r", "u")
        assert "user's frames only" in screen_text(app)
        await press(pilot, "u", "b", "v")
        text = screen_text(app)
        assert "bytes allocated" in text and "«all" in text and "[<module> train.py:40" in text
        await press(pilot, "down", "down", "enter")
        assert "«train train.py:12" in screen_text(app)
        await press(pilot, "escape")
        assert "«all" in screen_text(app) or "«<module>" in screen_text(app)


async def test_a_pattern_filters_the_tree(story: Path) -> None:
    app = app_of(story)
    async with opened(app) as pilot:
        await press(pilot, "4", "slash", *"pad", "enter", "e")
        assert (
            "/pad/" in screen_text(app) and "train.py:12" not in screen_text(app).split("share")[1]
        )
        await press(pilot, "escape", "slash", "left_parenthesis", "enter")
        assert any("not a regular expression" in note.message for note in app._notifications)


async def test_threads_are_looked_at_one_by_one(story: Path) -> None:
    app = app_of(story)
    async with opened(app) as pilot:
        await press(pilot, "4", "greater_than_sign")
        assert "thread 1" in screen_text(app) and "train.py:40" in screen_text(app)
        await press(pilot, "greater_than_sign")
        assert "thread 2" in screen_text(app) and "nothing was allocated here" in screen_text(app)
        await press(pilot, "m")
        assert app.view.thread is None


async def test_a_scope_is_zoomed_into(story: Path) -> None:
    app = app_of(story)
    async with opened(app, (200, 40)) as pilot:
        await press(pilot, "5", "enter")
        length = app.view.length_ns

    assert length == pytest.approx(2_000_000, rel=0.2)


async def test_pools_and_tapes_have_their_tables(story: Path) -> None:
    app = app_of(story)
    async with opened(app, (110, 40)) as pilot:
        await press(pilot, "6")
        assert "pool 'buffers'" in screen_text(app) and "25.0%" in screen_text(app)
        await press(pilot, "7")
        assert "multiply" in screen_text(app) and "16.4 kB" in screen_text(app)


async def test_another_recording_is_compared(story: Path, mended: Path) -> None:
    app = app_of(story, mended)
    async with opened(app, (110, 30)) as pilot:
        await press(pilot, "8")
        text = screen_text(app)

    assert "stable mended.tlm" in text and "leak story.tlm" in text
    assert "+ new" in text and "train.py:12 train" in text


async def test_a_file_to_compare_with_can_be_typed_and_a_wrong_one_is_told(
    story: Path, tmp_path: Path
) -> None:
    app = app_of(story)
    async with opened(app, (150, 30)) as pilot:
        await press(pilot, "8")
        assert "f asks for an earlier recording" in screen_text(app)
        await press(pilot, "f")
        app.screen.query_one("Prompt").value = "nothing.tlm"  # type: ignore[attr-defined]
        await press(pilot, "enter")

        assert "nothing.tlm does not exist; check the path" in screen_text(app)


async def test_help_begins_with_the_screen_in_front(story: Path) -> None:
    app = app_of(story)
    async with opened(app, (80, 24)) as pilot:
        for key, name in (("6", "Pools"), ("2", "Timeline")):
            await press(pilot, key, "question_mark")
            assert f"{name}: " in screen_text(app)
            await press(pilot, "escape")


async def test_names_of_screens_without_anything_are_dim(net: Path, story: Path) -> None:
    for path, empty in ((net, {"scopes", "pools", "tape", "diff"}), (story, {"diff"})):
        app = app_of(path)
        async with opened(app) as pilot:
            await press(pilot, "1")
            tabs = app.screen.query_one(ScreenTabs)
            assert tabs.empty == empty
            dim = [span for span in tabs.render().spans if span.style == "dim"]
            assert len(dim) == len(empty)


async def test_the_number_of_a_line_stays_where_names_are_long(tmp_path: Path) -> None:
    script = "/home/ada/a_module_with_a_very_long_name_of_a_project.py"
    app = app_of(write_story(tmp_path / "long.tlm", script=script))
    async with opened(app, (80, 24)) as pilot:
        for key in ("1", "2", "4"):
            await press(pilot, key)
            rows = screen_text(app).splitlines()[2:]
            assert any("project.py:12" in row for row in rows if "leak" not in row), key


async def test_keys_that_do_not_fit_are_left_out_whole(story: Path) -> None:
    app = app_of(story)
    async with opened(app, (80, 24)) as pilot:
        await press(pilot, "w")
        assert screen_text(app).splitlines()[-1].rstrip().endswith("w the peak")


async def test_help_names_every_key(story: Path) -> None:
    app = app_of(story)
    async with opened(app, (100, 200)) as pilot:
        await press(pilot, "question_mark")
        assert isinstance(app.screen, HelpPage)
        text = screen_text(app)
        for page in PAGES:
            for _, meaning in key_rows(page.__dict__.get("BINDINGS", ())):
                assert meaning in text
        await press(pilot, "escape")
        assert isinstance(app.screen, Page)


async def test_the_palette_leads_to_screens(story: Path) -> None:
    app = app_of(story)
    async with opened(app) as pilot:
        await pilot.press("ctrl+p")
        await until(pilot, lambda: isinstance(app.screen, CommandPalette), "the palette")
        await pilot.press(*"gototape")
        found = app.screen.query_one(CommandList)
        await until(pilot, lambda: names_of(found) == ["Go to tape"], "the one that matches")
        await pilot.press("enter")
        await until(pilot, lambda: app.current_mode == "tape", "the screen")


def names_of(found: CommandList) -> list[str]:
    """First lines of what the palette offers."""
    return [str(option.prompt).splitlines()[0] for option in found.options]


async def test_an_error_while_reading_is_told_on_screen(
    story: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Loaded) -> None:
        raise DamagedRecording("story.tlm was cut while it was read; record again")

    monkeypatch.setattr(Loaded, "read_events", fail)
    app = app_of(story)
    async with opened(app) as pilot:
        assert any("was cut while" in note.message for note in app._notifications)
        assert "stopped by an error" in screen_text(app)
        await pilot.press("q")

    assert app.return_code == 0


async def test_a_recording_that_was_not_sealed_says_so(tmp_path: Path) -> None:
    app = app_of(write_story(tmp_path / "x.tlm", "compact"))
    async with opened(app, (120, 30)):
        text = screen_text(app)

    assert "not complete: the program still runs, or was killed" in text
    assert "leak at train.py:12" in text


async def test_live_pauses_scrubs_and_leads_to_the_other_screens(story: Path) -> None:
    app = live_app_of(story)
    async with opened(app, (110, 40)) as pilot:
        await until_shown(pilot, "train.py:12 train")
        assert "ended at 1.00 s" in screen_text(app)
        await press(pilot, *["left"] * 20)
        text = screen_text(app)
        assert "paused at 0.60 s" in text and "train.py:12" in text
        await press(pilot, "space")
        assert "ended at 1.00 s" in screen_text(app)
        await press(pilot, "t")
        assert "lines by made" in screen_text(app)
        await press(pilot, "enter")
        assert app.current_mode == "overview" and "leak at train.py:12" in screen_text(app)
        await press(pilot, "9")
        assert app.current_mode == "live"


async def test_what_is_selected_survives_another_screen(story: Path) -> None:
    app: TlmemApp = app_of(story)
    async with opened(app) as pilot:
        await press(pilot, "2", "enter", "enter", "1", "2")

        assert "reference count" in screen_text(app)
        assert replace(app.view, cursor_ns=0).object == 1


async def test_a_followed_file_that_is_emptied_is_told_once(tmp_path: Path) -> None:
    path = write_story(tmp_path / "x.tlm", "compact", pid=os.getpid())
    app = live_app_of(path)
    async with opened(app, (110, 40)) as pilot:
        await until_shown(pilot, "train.py:12 train")
        path.write_bytes(b"")
        page = app.screen
        assert isinstance(page, LivePage)
        for _ in range(3):
            page.tick()
            await settle(pilot)
        notes = [note.message for note in app._notifications]

        assert len(notes) == 1 and "is empty" in notes[0] and "space tries" in notes[0]
        assert "paused" in screen_text(app) and "train.py:12 train" in screen_text(app)


async def test_the_mouse_moves_the_cursor_and_selects(story: Path) -> None:
    app = app_of(story)
    async with opened(app) as pilot:
        chart = app.screen.query_one(AreaChart)
        await pilot.click(chart, offset=(chart.margin + chart.columns // 4, 2))
        await settle(pilot)
        assert app.view.cursor_ns == pytest.approx(250_000_000, abs=10_000_000)
        await pilot.mouse_down(chart, offset=(chart.margin + chart.columns // 4, 2))
        await pilot.hover(chart, offset=(chart.margin + chart.columns // 2, 2))
        await pilot.mouse_up(chart, offset=(chart.margin + chart.columns // 2, 2))
        await settle(pilot)

    assert app.view.start_ns == pytest.approx(250_000_000, abs=10_000_000)
    assert app.view.stop_ns == pytest.approx(500_000_000, abs=15_000_000)


async def test_screens_made_ahead_are_those_that_keys_lead_to(story: Path) -> None:
    app = TlmemApp([Loaded(story)], hurried=True)
    async with opened(app) as pilot:
        await until(pilot, lambda: len(app._screen_stacks) == len(PAGES), "every screen")
        await settle(pilot)
        assert app.current_mode == "overview" and "leak at train.py:12" in screen_text(app)
        made = {name: stack[0] for name, stack in app._screen_stacks.items()}
        await press(pilot, "plus")
        for key, page in KEYS.items():
            await press(pilot, key)
            assert app.screen is made[page.NAME]
            assert f"[{key} {page.NAME.capitalize()}]" in screen_text(app)
            assert "0.250 s to 0.750 s" in screen_text(app)

    assert app.return_code is None


async def test_a_line_with_a_finding_is_marked_on_the_timeline(story: Path) -> None:
    app = app_of(story)
    async with opened(app, (80, 24)) as pilot:
        await press(pilot, "2")
        shown = screen_text(app)
        assert app.screen.query_one(LineChart).legend().plain.split()[1] == "train.py:12"

    lanes = [line for line in shown.splitlines() if ".py:" in line and "MB" in line]
    assert lanes[0].startswith("▸‼ train.py:12")
    assert "‼ never freed: 360 of 360" in " ".join(shown.split())
