"""Tracked memory by role over time: what is drawn, and the picture and command that draw it."""

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from support import programs, training
from support.traces import Program

from tlmem import cli
from tlmem.analysis.peak.explained import explain
from tlmem.report import plots
from tlmem.report.plots import roles
from tlmem.report.plots.plot_data import NothingToDraw, PlotView

TRAIN = """\
import torch

net = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 64))
optimizer = torch.optim.AdamW(net.parameters())
for step in range(8):
    loss = net(torch.ones(512, 64)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
PARAMETERS = 4 * (64 * 256 + 256 + 256 * 64 + 64)


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> PlotView:
    place = tmp_path_factory.mktemp("roles") / "net.tlm"
    return PlotView.of(training.trained(steps=40).recorded(place))


def texts_of(svg: bytes) -> list[str]:
    root = ElementTree.fromstring(svg)
    return ["".join(e.itertext()) for e in root.iter("{http://www.w3.org/2000/svg}text")]


def test_roles_at_the_highest_moment_are_those_of_the_peak(view: PlotView) -> None:
    data = roles.roles_over_time(view)
    found = explain(view.recording)

    assert data.is_peak and data.total == found.bytes == found.peak_bytes
    assert {name: size for name, size in data.highest.items() if size} == {
        each.role: each.bytes for each in found.roles if each.bytes
    }
    assert (data.step, data.steps) == (found.moment.step, found.moment.steps) == (2, 40)
    assert data.highest_ns == found.moment.time_ns


def test_areas_are_in_the_order_of_the_picture(view: PlotView) -> None:
    assert list(roles.roles_over_time(view).bytes) == [
        "weights",
        "optimizer state",
        "gradients",
        "activations",
        "temporaries",
        "inputs",
        "kept by Python",
    ]


@pytest.mark.parametrize("moments", [1, 7, 100, 400])
def test_each_part_of_the_time_shows_its_highest_and_lowest(view: PlotView, moments: int) -> None:
    data = roles.roles_over_time(view, moments=moments)
    events = view.recording.events
    size = view.recording.objects["size_bytes"]
    change = np.select(
        [events["kind"] == 1, events["kind"] == 2],
        [events["object"].map(size), -events["object"].map(size)],
        0,
    )
    level, time = np.cumsum(change), events["time_ns"].to_numpy()
    part = np.searchsorted(data.edges_ns[1:-1], time, side="right")
    before = np.concatenate(([0], level))[np.searchsorted(time, data.edges_ns[:-1])]
    highest = [max(before[n], level[part == n].max(initial=0)) for n in range(moments)]
    lowest = [min(before[n], level[part == n].min(initial=before[n])) for n in range(moments)]

    assert sum(data.bytes.values()).tolist() == highest
    assert data.lowest.tolist() == lowest


def test_a_range_without_the_peak_shows_its_own_highest_moment(view: PlotView) -> None:
    first_ns = roles.roles_over_time(view).highest_ns
    early = PlotView.of(view.recording, until=0.9 * first_ns / 1e9)
    texts = texts_of(plots.picture(early, "roles", "svg"))

    assert not roles.roles_over_time(early).is_peak
    assert any("highest " in text and " in step " in text for text in texts)
    assert "bytes at the highest" in texts


def test_the_picture_names_roles_with_their_bytes_and_the_peak(view: PlotView) -> None:
    texts = texts_of(plots.picture(view, "roles", "svg"))

    assert "Tracked memory by role" in texts and "most alive at once (kB)" in texts
    assert {"activations 524 kB", "weights 65.5 kB", "bytes at the peak"} <= set(texts)
    assert " peak 852 kB in step 2" in texts
    assert "least at once" not in texts


def test_a_small_picture_has_names_without_bytes(view: PlotView) -> None:
    texts = texts_of(plots.picture(view, "roles", "svg", plots.parse_size("640x400")))

    assert {"activations", "weights"} <= set(texts)
    assert not any("bytes at" in text for text in texts)


def test_many_steps_have_a_line_for_their_lows(tmp_path: Path) -> None:
    loop = training.trained(steps=400, blocks=1)
    texts = texts_of(
        plots.picture(PlotView.of(loop.recorded(tmp_path / "n.tlm")), "roles", "svg", (3.0, 3.0))
    )

    assert any(text.startswith("least at") for text in texts)


def test_a_picture_is_the_same_bytes_each_time_and_part_of_all(view: PlotView) -> None:
    assert plots.picture(view, "roles", "svg") == plots.picture(view, "roles", "svg")
    assert "Tracked memory by role" in texts_of(plots.picture(view, "all", "svg"))


def test_one_memory_is_shown(tmp_path: Path) -> None:
    loop = training.Loop()
    loop.alloc(training.init(), 1_000)
    loop.alloc(training.at(5), 9_000, device=training.NUMPY)
    loop.alloc(training.init(), 50_000, device=training.ACCELERATOR, accelerator=1)
    view = PlotView.of(loop.recorded(tmp_path / "two.tlm"))

    assert roles.roles_over_time(view).memory == "accelerator:1"
    assert roles.roles_over_time(view, "host").highest["other"] == 9_000
    assert "Tracked memory of accelerator:1 by role" in texts_of(
        plots.picture(view, "roles", "svg")
    )
    with pytest.raises(NothingToDraw, match="'cuda:0'; --memory may be: accelerator:1, host"):
        roles.roles_over_time(view, "cuda:0")


def test_a_recording_without_pytorch_has_no_roles() -> None:
    program = Program(step_ns=100_000)
    program.alloc(1)
    view = PlotView.of(program.recording())

    with pytest.raises(NothingToDraw, match="roles come from PyTorch; use --by line"):
        roles.roles_over_time(view)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--kind", "pool", "--by", "role"], "--by role goes with --kind memory or sites"),
        (["--memory", "host"], "--memory host goes with --by role"),
    ],
)
def test_what_does_not_go_together_is_one_sentence(words, said, tmp_path, capsys) -> None:
    path = training.trained(steps=2, blocks=1).write(tmp_path / "net.tlm")

    assert cli.main(["plot", str(path), "-o", str(tmp_path / "x.png"), *words]) == 2
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1
    assert not (tmp_path / "x.png").exists()


def test_the_command_names_the_picture_and_draws_lines_too(tmp_path: Path, monkeypatch) -> None:
    training.trained(steps=2, blocks=1).write(tmp_path / "net.tlm")
    monkeypatch.chdir(tmp_path)

    assert cli.main(["plot", "net.tlm", "--by", "role"]) == 0
    assert cli.main(["plot", "net.tlm", "--by", "line", "-o", "a.svg"]) == 0
    assert cli.main(["plot", "net.tlm", "--kind", "sites", "-o", "b.svg"]) == 0
    assert (tmp_path / "net-roles.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_a_training_loop_is_drawn_by_role(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs PyTorch: pip install tlmem[torch]")
    (tmp_path / "train.py").write_text(TRAIN)
    done = programs.recorded(["train.py"], tmp_path, options=("-q", "-o", "train.tlm"))
    assert done.returncode == 0, done.stderr.decode()
    from tlmem.recording.reader import read

    data = roles.roles_over_time(PlotView.of(read(tmp_path / "train.tlm")))

    assert data.bytes["weights"].max() == PARAMETERS
    assert data.bytes["gradients"].max() == PARAMETERS
    assert 0 <= data.bytes["optimizer state"].max() - 2 * PARAMETERS <= 64
    assert data.bytes["activations"].max() >= 512 * 256 * 4
    assert data.steps == 8
