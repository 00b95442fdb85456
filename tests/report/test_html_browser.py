"""The page of a report in a real browser: it runs without an error, and does what it offers."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import programs
from support.browser import Browser, find
from support.summaries import leaking

from tlmem.report import html
from tlmem.report.summary import Summary

pytestmark = [
    pytest.mark.xdist_group("browser"),
    pytest.mark.skipif(
        find() is None and "TLMEM_REQUIRE_BROWSER" not in os.environ,
        reason="there is no Chromium on this machine (Debian: apt-get install chromium)",
    ),
]

SCRIPT = """\
import threading
import time
import numpy as np
import tlmem

kept = []
slots = {}

def prefetch():
    for step in range(500):
        slots[step % 10] = np.ones(500)

def load(step):
    return np.ones(2000 + step)

def smooth(values):
    return np.convolve(values, np.ones(5))

def main():
    other = threading.Thread(target=prefetch)
    other.start()
    other.join()
    for step in range(1500):
        if step % 100 == 0:
            tlmem.mark("epoch", step // 100)
        kept.append(load(step))
        smooth(kept[-1])
        time.sleep(0.001)

main()
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a leaking program whose script has a name that would break a careless one."""
    place = tmp_path_factory.mktemp("page")
    script = place / "a<script>alert(1)<&'\"b.py"
    script.write_text(SCRIPT)
    recorded = programs.run(
        [sys.executable, "-m", "tlmem", "record", "-q", "-o", "run.tlm", str(script)], place
    )
    assert recorded.returncode == 0, recorded.stderr
    reported = programs.command(["report", "run.tlm", "--format", "html", "-o", "run.html"], place)
    assert reported.returncode == 0, reported.stderr
    return place / "run.html"


@pytest.fixture(scope="module")
def browser(page: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as browser:
        browser.open(page)
        yield browser


@pytest.fixture
def fresh(browser: Browser, page: Path) -> Browser:
    browser.open(page)
    return browser


BOXES = "[...document.querySelectorAll('.boxes button')]"
ABOUT = "document.querySelector('.about').textContent"


def test_the_page_opens_without_an_error_and_asks_for_nothing_else(
    fresh: Browser, page: Path
) -> None:
    assert fresh.evaluate("document.querySelector('.verdict strong').textContent") == "✗ leak"
    assert fresh.logged == []
    assert set(fresh.requests) <= {page.as_uri(), "about:blank"}


def test_a_name_with_a_script_in_it_is_shown_as_it_is(fresh: Browser) -> None:
    assert fresh.evaluate("document.title") == "tlmem: a<script>alert(1)<&'\"b.py"
    assert fresh.evaluate("document.scripts.length") == 2
    assert "a<script>alert(1)<&'\"b.py" in fresh.evaluate(
        "document.querySelector('table.sortable').textContent"
    )


def test_every_picture_has_a_size_and_its_texts(fresh: Browser) -> None:
    shown = fresh.evaluate(
        "[...document.querySelectorAll('figure svg')].map(e => "
        "[e.getBoundingClientRect().width, e.getBoundingClientRect().height, e.textContent])"
    )

    assert len(shown) == 4
    assert all(width > 300 and height > 150 for width, height, _ in shown)
    assert all("time since the start of the recording" in text for *_, text in shown)


def test_the_flame_graph_shows_who_called_whom(fresh: Browser) -> None:
    texts = fresh.evaluate(f"{BOXES}.map(e => e.title)")

    assert texts[0].startswith("all")
    assert any(text.startswith("load\n") for text in texts)
    assert any(text.startswith("main\n") for text in texts)


def choose(browser: Browser, measure: int) -> None:
    browser.evaluate(
        f"(() => {{ const e = document.querySelector('.tools select'); e.value = '{measure}';"
        "e.dispatchEvent(new Event('change')); })()"
    )


def test_a_click_zooms_and_show_all_goes_back(fresh: Browser) -> None:
    choose(fresh, 2)
    smooth = f"{BOXES}.find(e => e.title.startsWith('smooth'))"
    width = f"{smooth}.getBoundingClientRect().width"
    before, narrow = fresh.evaluate(f"{BOXES}.length"), fresh.evaluate(width)
    whole = fresh.evaluate("document.querySelector('.boxes').clientWidth")
    fresh.evaluate(f"{smooth}.id = 'smooth'")
    fresh.click("#smooth")

    assert narrow < 0.9 * whole
    assert fresh.evaluate(width) > 0.99 * whole
    assert fresh.evaluate(ABOUT).startswith("smooth")
    assert fresh.evaluate("document.querySelectorAll('.boxes .above').length") >= 2

    fresh.click(".reset")

    assert fresh.evaluate(f"{BOXES}.length") == before
    assert fresh.evaluate(width) == narrow
    assert fresh.evaluate(ABOUT).startswith("all")


def test_the_search_marks_frames_and_says_how_much_they_have(fresh: Browser) -> None:
    def search(words: str) -> tuple[int, str]:
        fresh.evaluate(
            f"(() => {{ const e = document.querySelector('.tools input[type=search]');"
            f"e.value = '{words}'; e.dispatchEvent(new Event('input')); }})()"
        )
        found = fresh.evaluate("document.querySelectorAll('.boxes .found').length")
        return found, fresh.evaluate("document.querySelector('.shown').textContent")

    count, said = search("^load")
    assert count >= 1 and said.endswith("%")
    assert search("no such frame") == (0, "0 B found, 0.0%")
    assert search("load(")[0] == 0  # no pattern: looked for as it is


def test_the_other_measure_and_the_turned_graph_are_drawn(fresh: Browser) -> None:
    choose(fresh, 2)
    callers = fresh.evaluate(f"{BOXES}.map(e => e.title.split('\\n')[0])")
    fresh.click(".tools input[type=checkbox]")
    callees = fresh.evaluate(f"{BOXES}.map(e => e.title.split('\\n')[0])")

    assert "smooth" in callers
    # Under the whole now stand lines that allocated, above them who called them.
    assert callers[1] == "<module>" and callees[1] != "<module>"
    assert set(callees) >= {"load", "smooth", "main", "<module>"}


def move(browser: Browser, slider: str, share: float) -> tuple[str, list[str]]:
    """Puts a slider at a share of its way: what is said then, and what the graph shows."""
    browser.evaluate(
        f"(() => {{ const e = document.querySelector('.moments .{slider}');"
        f"e.value = Math.round({share} * e.max); e.dispatchEvent(new Event('input')); }})()"
    )
    return browser.evaluate("document.querySelector('.when').textContent"), browser.evaluate(
        f"{BOXES}.map(e => e.title.split('\\n').join(' '))"
    )


def megabytes(said: str) -> float:
    return float(said.split(" MB")[0].split()[-1])


def test_the_slider_shows_what_was_alive_at_a_moment(fresh: Browser) -> None:
    early, _ = move(fresh, "at", 0.3)
    late, shown = move(fresh, "at", 0.9)

    assert "(epoch " in early and "objects" in early
    assert 1.5 * megabytes(early) < megabytes(late)
    assert any(title.startswith("load ") for title in shown)
    assert not any(title.startswith("smooth ") for title in shown)

    between, _ = move(fresh, "since", 0.6)

    assert "allocated after" in between and 0 < megabytes(between) < megabytes(late)


def test_a_finding_leads_to_its_line_in_the_flame_graph(fresh: Browser) -> None:
    fresh.click("button.seek")

    said = fresh.evaluate("document.querySelector('.shown').textContent")
    assert said.endswith("%") and not said.startswith("0 B")
    assert fresh.evaluate("document.querySelectorAll('.boxes .found').length") == 1


def test_the_verdict_leads_to_its_finding_its_holder_and_the_life_of_an_object(
    fresh: Browser,
) -> None:
    way = "document.querySelector('.verdict .ways a[href*={}]')"
    holder, known = way.format("holders"), "[...document.querySelectorAll('.verdict a')].at(-1)"
    held = fresh.evaluate(f"{holder}.hash.slice(1)")
    shown = f"document.getElementById('{held}').checkVisibility()"

    assert fresh.evaluate(f"{way.format('finding')}.textContent").endswith("b.py:14")
    assert fresh.evaluate(f"{holder}.textContent").startswith("held by list 'kept'")
    assert not fresh.evaluate(shown)
    fresh.click(".verdict .ways a[href*=holders]")
    assert fresh.evaluate(shown)

    fresh.click(".verdict .ways a:last-child")
    life = f"document.getElementById({known}.hash.slice(1))"
    bars = fresh.evaluate(
        f"[...{life}.querySelectorAll('.lane')].map(e => [e.querySelector('.of').textContent,"
        "e.querySelector('.span').getBoundingClientRect().width])"
    )
    assert fresh.evaluate(f"{life}.matches(':target')")
    assert bars[0][0] == "alive" and bars[0][1] > 1
    assert any(name.startswith("list 'kept'") and width > 1 for name, width in bars)
    assert fresh.evaluate(f"{life}.querySelector('a').hash") == "#p0-finding-0"


def test_threads_have_bars_as_long_as_what_they_hold(fresh: Browser) -> None:
    rows = fresh.evaluate(
        "[...document.querySelectorAll('.threads tbody tr')].map(row => [row.cells[0].textContent,"
        "Number(row.cells[1].dataset.value), Number(row.cells[4].textContent.replace(',', '')),"
        "parseFloat(getComputedStyle(row.cells[1]).backgroundSize)])"
    )
    (main, most, _, whole), (_, held, made, share) = rows

    assert main.startswith("main thread")
    assert held == 40_000 and made >= 500
    assert whole == 100 and share == pytest.approx(100 * held / most, abs=0.06)


def test_a_heat_map_says_what_is_below_the_mouse_and_opens_that_process(
    browser: Browser, tmp_path: Path
) -> None:
    family = Summary((leaking(pid=7), leaking(pid=8)))
    (tmp_path / "family.html").write_text(html.render(family))
    browser.open(tmp_path / "family.html")
    lower = "#process-1[open]"

    def at(share: float) -> tuple[float, float]:
        return browser.evaluate(
            "(() => { const r = document.getElementById('heat-cells').getBoundingClientRect();"
            f"return [r.x + r.width / 2, r.y + {share} * r.height]; }})()"
        )

    said = []
    for share in (0.25, 0.75):
        x, y = at(share)
        browser.command("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        said.append(browser.evaluate("document.querySelector('.reading').textContent"))
    assert [text.split(" · ")[0] for text in said] == ["process 7", "process 8"]
    assert all(text.split(" · ")[2].endswith(" MB") for text in said)

    assert browser.evaluate(f"document.querySelector('{lower}')") is None
    for kind in ("mousePressed", "mouseReleased"):
        browser.command(
            "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1
        )
    assert browser.evaluate(f"document.querySelector('{lower} .verdict') !== null")


def test_a_column_is_sorted_by_its_numbers_and_turned_round(fresh: Browser) -> None:
    column = "[...document.querySelectorAll('table.sortable')].at(-1).tBodies[0].rows"
    head = "[...document.querySelectorAll('table.sortable')].at(-1).tHead.rows[0].cells[4]"
    values = f"[...{column}].map(r => Number(r.cells[4].dataset.value))"
    fresh.evaluate(f"{head}.querySelector('button').click()")
    down = fresh.evaluate(values)
    fresh.evaluate(f"{head}.querySelector('button').click()")

    assert len(down) > 2
    assert down == sorted(down, reverse=True)
    assert fresh.evaluate(values) == sorted(down)
    assert fresh.evaluate(f"{head}.getAttribute('aria-sort')") == "ascending"


def test_the_page_works_on_a_narrow_screen(fresh: Browser) -> None:
    size = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    fresh.command("Emulation.setDeviceMetricsOverride", **size)
    wide = fresh.evaluate("document.documentElement.scrollWidth")
    fresh.command("Emulation.clearDeviceMetricsOverride")

    assert wide <= 390


def test_nothing_is_cut_off_on_paper(fresh: Browser) -> None:
    fresh.command("Emulation.setEmulatedMedia", media="print")
    size = {"width": 750, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    fresh.command("Emulation.setDeviceMetricsOverride", **size)
    fresh.evaluate("dispatchEvent(new Event('beforeprint'))")
    too_wide = fresh.evaluate(
        "[...document.querySelectorAll('p, li, td, pre, table, svg')]"
        ".filter(e => e.getBoundingClientRect().right > 750).map(e => e.outerHTML.slice(0, 99))"
    )
    fresh.command("Emulation.clearDeviceMetricsOverride")
    fresh.command("Emulation.setEmulatedMedia", media="screen")

    assert too_wide == []


def test_a_dark_page_has_light_texts_in_its_pictures(fresh: Browser) -> None:
    def colours(scheme: str) -> tuple[str, str]:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        fresh.command("Emulation.setEmulatedMedia", features=features)
        return fresh.evaluate(
            "[getComputedStyle(document.body).backgroundColor, "
            "getComputedStyle(document.querySelector('figure svg')).color]"
        )

    assert colours("light") == ["rgb(255, 255, 255)", "rgb(27, 27, 27)"]
    assert colours("dark") == ["rgb(22, 24, 27)", "rgb(230, 230, 227)"]


def test_everything_unfolds_for_printing(fresh: Browser) -> None:
    fresh.evaluate("dispatchEvent(new Event('beforeprint'))")

    assert fresh.evaluate("document.querySelectorAll('details:not([open])').length") == 0


def test_nothing_of_all_this_logged_an_error(browser: Browser) -> None:
    assert browser.logged == []
