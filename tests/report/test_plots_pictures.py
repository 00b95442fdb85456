"""Pictures as files: their formats, labels, sizes, and that nothing of the user's is touched."""

import hashlib
import re
import subprocess
import sys
import warnings
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from support.traces import Program

from tlmem import cli
from tlmem.report import plots
from tlmem.report.plots import style
from tlmem.report.plots.plot_data import NothingToDraw, PlotView


@pytest.fixture(scope="module")
def view() -> PlotView:
    program = Program(step_ns=100_000)
    for _ in range(2000):
        program.temporary(10)
        program.alloc(20)
    return PlotView.of(with_marks(program.recording(), 30))


def with_marks(recording, count: int):
    import pandas as pd

    times = np.linspace(0, recording.seconds * 1e9, count).astype(np.int64)
    recording.marks = pd.DataFrame({"time_ns": times, "label": "epoch", "index": range(count)})
    recording.horizon_ns = 0
    return recording


@pytest.mark.parametrize("kind", ["memory", "sites", "objects", "growth", "all"])
def test_a_picture_is_the_same_bytes_each_time(view: PlotView, kind: str) -> None:
    digests = {hashlib.sha256(plots.picture(view, kind, "svg")).hexdigest() for _ in range(2)}

    assert len(digests) == 1


@pytest.mark.parametrize(
    ("format", "begin"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")]
)
def test_each_format_is_what_it_says(view: PlotView, format: str, begin: bytes) -> None:
    assert plots.picture(view, "memory", format).startswith(begin)


@pytest.mark.parametrize("kind", ["memory", "sites", "objects", "growth"])
def test_axes_have_names_and_units(view: PlotView, kind: str) -> None:
    texts = texts_of(plots.picture(view, kind, "svg"))

    assert any(re.search(r"time since the start of the recording \((ms|s)\)", t) for t in texts)
    if kind != "objects":
        assert any(re.search(r"\((kB|MB)\)", text) for text in texts)
    assert "epoch 0" in texts


def test_a_slope_is_written_with_its_unit(view: PlotView) -> None:
    texts = texts_of(plots.picture(view, "growth", "svg"))

    assert any(re.fullmatch(r"\+\d.*MB/s", text) for text in texts)
    assert any(re.fullmatch(r"95% CI \d.*\N{EN DASH}\d.*", text) for text in texts)


def texts_of(svg: bytes) -> list[str]:
    root = ElementTree.fromstring(svg)
    return ["".join(e.itertext()) for e in root.iter("{http://www.w3.org/2000/svg}text")]


def test_all_leaves_out_what_is_not_there(view: PlotView) -> None:
    texts = texts_of(plots.picture(view, "all", "svg"))

    assert not any("Pools" in text for text in texts)
    with pytest.raises(NothingToDraw):
        plots.picture(view, "pool", "svg")


def test_areas_differ_by_hatches_too(view: PlotView) -> None:
    svg = plots.picture(view, "memory", "svg").decode()

    assert svg.count("<pattern") >= 2


def test_strange_names_are_drawn_as_they_are(view: PlotView) -> None:
    name = "x$_{1}$<script>&\udcff\x07"
    figure_name = style.shortened(name, 60)

    assert figure_name == "x$_{1}$<script>&\\udcff\\x07"
    with style.settings():
        figure = plots.draw(view, ["memory"])
        figure.text(0.5, 0.5, figure_name)
        from io import BytesIO

        made = BytesIO()
        figure.savefig(made, format="svg")
    assert figure_name in texts_of(made.getvalue())


def test_long_labels_lose_their_middle() -> None:
    assert style.shortened("a" * 20 + "b" * 20, 11) == "aaa…bbbbbbb"
    assert style.shortened("short", 11) == "short"


def test_labels_without_room_go_on_a_second_line() -> None:
    assert style.wrapped("libraries, files, stacks", 40) == "libraries, files, stacks"
    assert style.wrapped("libraries, files, stacks", 16) == "libraries,\nfiles, stacks"
    assert max(len(line) for line in style.wrapped("a" * 90 + " main", 16).split("\n")) == 16


@pytest.mark.parametrize(
    ("text", "size"),
    [("1600x800", (10.0, 5.0)), ("25.4x12.7cm", (10.0, 5.0)), ("10x5in", (10.0, 5.0))],
)
def test_sizes_are_pixels_or_lengths(text: str, size: tuple[float, float]) -> None:
    assert plots.parse_size(text) == pytest.approx(size)


@pytest.mark.parametrize("text", ["", "10", "10x", "-5x5in", "1x1", "99999x99999in", "nanxnan"])
def test_what_is_no_size_is_refused_in_words(text: str) -> None:
    with pytest.raises(plots.UnknownFormat, match="size|inches"):
        plots.parse_size(text)


@pytest.mark.parametrize("size", ["320x320", "2x20in", "100x3in"])
def test_every_size_can_be_drawn(view: PlotView, size: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert plots.picture(view, "all", "png", plots.parse_size(size))


def test_settings_of_the_user_are_neither_used_nor_changed(view: PlotView) -> None:
    import matplotlib

    before = plots.picture(view, "memory", "svg")
    with matplotlib.rc_context({"font.size": 30.0, "axes.facecolor": "red"}):
        changed = dict(matplotlib.rcParams)
        assert plots.picture(view, "memory", "svg") == before
        assert dict(matplotlib.rcParams) == changed


def loaded_after(code: str) -> list[str]:
    """Modules in memory after running code in a fresh interpreter."""
    code += "; import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_no_window_system_is_touched() -> None:
    code = (
        "from tlmem.report import plots; from tlmem.report.plots import style\n"
        "with style.settings(): from matplotlib.figure import Figure; "
        "from matplotlib.backends import backend_agg, backend_svg, backend_pdf"
    )
    code = "\n".join([*code.split("\n"), "pass"])

    assert "matplotlib.pyplot" not in loaded_after(f"exec({code!r})")


def test_what_draws_and_exports_is_loaded_only_when_it_is_needed() -> None:
    loaded = loaded_after("import tlmem.report.plots, tlmem.report.html, tlmem.export")

    # pandas itself imports pyarrow where it is installed.
    assert {"matplotlib", "scipy", "tlmem._native"} & set(loaded) == set()


def test_a_recording_with_losses_says_so_in_its_picture(view: PlotView) -> None:
    program = Program()
    program.alloc(1)
    program.wait(1_000_000)
    recording = with_marks(program.recording(), 1)
    recording.problems = ["a block is damaged"]

    texts = texts_of(plots.picture(PlotView.of(recording), "sites", "svg"))
    assert "program.py, parts are missing" in texts
    assert "program.py" in texts_of(plots.picture(view, "sites", "svg"))


@pytest.mark.parametrize("seconds", ["nan", "inf", "-1", "1e300", "soon"])
@pytest.mark.parametrize("command", [["plot"], ["export", "--to", "csv"]])
def test_what_is_no_time_is_refused(command: list[str], seconds: str, capsys) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main([command[0], "run.tlm", *command[1:], f"--since={seconds}"])

    assert left.value.code == 2
    assert "seconds" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["plot", "none.tlm"], "none.tlm"),
        (["plot", "none.tlm", "-o", "x.bmp"], ".png, .svg or .pdf"),
        (["plot", "none.tlm", "-o", "x.png", "--size", "wide"], "is not a size"),
    ],
)
def test_what_cannot_be_drawn_is_one_sentence(
    words: list[str], part: str, tmp_path: Path, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)

    assert cli.main(words) == 2
    err = capsys.readouterr().err
    assert err.startswith("tlmem: ") and part in err and err.count("\n") == 1
