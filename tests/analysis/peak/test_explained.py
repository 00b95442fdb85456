"""What was alive at a moment: sums that are exact, moments by time and mark, memories apart."""

import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import training
from support.story import write_story
from support.traces import Program
from support.training import Loop, trained

from tlmem.analysis.holders.snapshots import Snapshots
from tlmem.analysis.peak.blocks import blocks_of, memory_names
from tlmem.analysis.peak.explained import Explained, NoSuchMemory, NoSuchMoment, explain
from tlmem.analysis.peak.roles import Named, Role
from tlmem.recording.format.chains import ChainStep, StepKind
from tlmem.recording.reader import Recording, read

UNIT = 16_384


def roles(found: Explained) -> dict[str, int]:
    return {each.role: each.bytes for each in found.roles if each.bytes}


def assert_sums_are_exact(found: Explained) -> None:
    """Each way to take the bytes apart gives all of them."""
    assert sum(each.bytes for each in found.roles) == found.bytes
    assert sum(each.count for each in found.roles) == found.count
    assert sum(each.bytes for each in found.lines) == found.bytes
    assert sum(each.count for each in found.lines) == found.count
    assert sum(each.own for each in found.modules) == found.bytes
    roots = [each for each in found.modules if len(each.path) <= 1]
    assert sum(each.bytes for each in roots) == found.bytes
    if found.marks:
        assert sum(each.bytes for each in found.marks) == found.bytes
    for part in (*found.lines, *found.modules):
        assert sum(part.roles.values()) == part.bytes
    for role in found.roles:
        assert sum(size for _, size in role.lines) == role.bytes
        assert sum(size for _, size in role.modules) <= role.bytes


def test_the_peak_of_a_training_loop(tmp_path: Path) -> None:
    recording = trained(steps=4, blocks=4, unit=UNIT, batch=4).recorded(tmp_path / "a.tlm")
    found = explain(recording)

    assert_sums_are_exact(found)
    assert found.bytes == recording.totals.peak_bytes
    assert roles(found) == {
        "weights": 4 * UNIT,
        "optimizer state": 8 * UNIT,
        "activations": 8 * 4 * UNIT,
        "temporaries": 4 * UNIT + 64,
        "inputs": 4 * UNIT,
        "kept by Python": 64,
    }
    assert (found.moment.step, found.moment.steps) == (2, 4)
    assert (found.moment.phase, found.moment.module) == ("in backward", "h.3")
    assert str(found.moment.site) == f"{training.SCRIPT}:70"


def test_modules_of_forward_and_of_backward(tmp_path: Path) -> None:
    found = explain(trained(steps=4, blocks=2, unit=UNIT).recorded(tmp_path / "a.tlm"))
    sums = {
        found.module_text(each.path): (each.bytes, each.own) for each in found.modules if each.path
    }

    assert sums == {
        "Net": (26 * UNIT, 0),
        "h": (26 * UNIT, 0),
        "h.0": (11 * UNIT, 4 * UNIT),
        "h.0.fc": (7 * UNIT, 7 * UNIT),
        "h.1": (15 * UNIT, 8 * UNIT),
        "h.1.fc": (7 * UNIT, 7 * UNIT),
    }
    of_fc = next(each for each in found.modules if each.path[-1:] == ("fc",))
    assert of_fc.roles == {"weights": UNIT, "optimizer state": 2 * UNIT, "activations": 4 * UNIT}
    outside = next(each for each in found.modules if not each.path)
    assert not {"weights", "optimizer state"} & set(outside.roles)


def test_gradients_are_of_the_module_of_their_node(tmp_path: Path) -> None:
    loop = trained(steps=2, blocks=3, unit=UNIT)
    loop.mark("end")
    found = explain(loop.recorded(tmp_path / "a.tlm"), "end")
    gradients = next(each for each in found.roles if each.role == "gradients")

    assert dict(gradients.modules) == {("Net", "h", str(n), "fc"): UNIT for n in range(3)}


def test_every_kind_of_moment(tmp_path: Path) -> None:
    loop = Loop()
    first = loop.alloc(training.at(10), 1_000)
    loop.mark("load")
    second = loop.alloc(training.at(11), 2_000)
    loop.mark("epoch", 1)
    loop.free(first, training.at(12))
    loop.mark("epoch", 2)
    loop.mark("odd:1", 7)
    loop.free(second, training.at(12))
    recording = loop.recorded(tmp_path / "a.tlm")

    assert explain(recording).bytes == 3_000
    assert explain(recording, "load").bytes == 1_000
    assert explain(recording, "epoch").bytes == 3_000
    assert explain(recording, "epoch:2").bytes == 2_000
    assert explain(recording, "odd:1").bytes == 2_000
    assert explain(recording, "odd:1:7").bytes == 2_000
    assert explain(recording, "0").bytes == 0
    assert explain(recording, "0.001ms").bytes == 1_000
    assert explain(recording, "0.0000035").bytes == 3_000
    assert explain(recording, "0.0000042 s").bytes == 3_000
    found = explain(recording, "epoch:2")
    assert (found.is_peak, found.peak_bytes) == (False, 3_000)
    assert found.moment.mark == ("epoch", 2)
    assert not found.lowered


@pytest.mark.parametrize(
    "at", ["", "no", "epoch:", "epoch:9", "-1", "1e3", "nan", "99", "epoch:1:1"]
)
def test_a_moment_that_is_not_there_is_refused_with_what_is(at: str, tmp_path: Path) -> None:
    loop = Loop()
    loop.alloc(training.at(10), 1_000)
    loop.mark("epoch", 1)
    recording = loop.recorded(tmp_path / "a.tlm")
    with pytest.raises(NoSuchMoment, match="its marks are: epoch|ends after"):
        explain(recording, at)


def test_a_recording_without_marks_says_so(tmp_path: Path) -> None:
    loop = Loop()
    loop.alloc(training.at(10), 1_000)
    with pytest.raises(NoSuchMoment, match="it has no marks"):
        explain(loop.recorded(tmp_path / "a.tlm"), "epoch")


def test_memories_are_apart_and_the_highest_is_shown(tmp_path: Path) -> None:
    loop = Loop()
    loop.notes["accelerator.0"] = "cuda NVIDIA H100"
    loop.alloc(training.at(10), 100, device=training.NUMPY)
    loop.alloc(training.at(10), 200)
    loop.alloc(training.at(10), 50, device=training.PROBE)
    loop.alloc(training.at(10), 4_000, device=training.MAPPED)
    for index, size in ((0, 9_000), (1, 7_000)):
        loop.alloc(training.at(11), size, device=training.ACCELERATOR, accelerator=index)
    recording = loop.recorded(tmp_path / "a.tlm")
    found = explain(recording)

    assert (found.memory, found.bytes) == ("cuda:0", 9_000)
    assert found.others == {"accelerator:1": 7_000, "torch-mapped": 4_000, "host": 350}
    assert explain(recording, memory="host").bytes == 350
    assert explain(recording, memory="accelerator:1").bytes == 7_000
    with pytest.raises(NoSuchMemory, match="'tpu'; memories with objects: cuda:0, accelerator:1"):
        explain(recording, memory="tpu")


def test_two_accelerators_may_have_a_block_at_the_same_address(tmp_path: Path) -> None:
    loop = Loop()
    for index in (0, 1):
        loop.next_address = 0x4000
        loop.alloc(training.at(11), 5_000, device=training.ACCELERATOR, accelerator=index)
    found = explain(loop.recorded(tmp_path / "a.tlm"))

    assert (found.bytes, found.others) == (5_000, {"accelerator:1": 5_000})


def test_backward_of_an_accelerator_runs_in_a_thread_without_frames(tmp_path: Path) -> None:
    loop = Loop()
    loop.names[2] = "pt_autograd_0"
    device = {"device": training.ACCELERATOR}
    for _ in range(3):
        saved = loop.alloc(training.forward(), UNIT, "Net/fc", node=4, **device)
        passing = loop.alloc((), 2 * UNIT, thread=2, node=3, **device)
        gradient = loop.alloc((), 512, thread=2, **device)
        loop.free(saved, (), thread=2)
        loop.free(passing, (), thread=2)
        loop.free(loop.alloc(training.optimizer(), 128, **device), training.optimizer())
        loop.free(gradient, training.zero_grad())
    found = explain(loop.recorded(tmp_path / "a.tlm"))

    assert_sums_are_exact(found)
    assert roles(found) == {"activations": UNIT, "temporaries": 2 * UNIT, "gradients": 512}
    assert found.moment.phase == "in backward"


def test_a_numpy_program_by_line_and_mark(tmp_path: Path) -> None:
    loop = Loop()
    loop.alloc(training.at(10), 3_000, device=training.NUMPY)
    for index in range(4):
        loop.mark("load", index)
        loop.alloc(training.at(20), 1_000, device=training.NUMPY)
    loop.mark("train")
    last = loop.alloc(training.at(30), 500, device=training.NUMPY)
    loop.free(last, training.at(31))
    found = explain(loop.recorded(tmp_path / "a.tlm"))

    assert_sums_are_exact(found)
    assert [(each.site.line, each.bytes) for each in found.lines] == [
        (20, 4_000),
        (10, 3_000),
        (30, 500),
    ]
    assert [(each.label, each.first, each.last, each.bytes) for each in found.marks] == [
        ("load", 0, 3, 4_000),
        ("", 0, 0, 3_000),
        ("train", 0, 0, 500),
    ]
    assert found.moment.mark == ("train", 0)
    assert (found.moment.phase, found.moment.steps, found.training) == ("", 0, False)


@pytest.mark.parametrize("form", ["sealed", "raw", "compact"])
def test_the_runtimes_objects_and_arrays_together(form: str, tmp_path: Path) -> None:
    recording = read(write_story(tmp_path / "a.tlm", form=form))
    found = explain(recording)

    assert_sums_are_exact(found)
    assert found.bytes == recording.totals.peak_bytes
    assert set(roles(found)) == {"objects", "NumPy arrays"}


def test_a_killed_program(tmp_path: Path) -> None:
    recording = trained().recorded(tmp_path / "a.tlm", "compact")
    found = explain(recording)

    assert_sums_are_exact(found)
    assert found.bytes == recording.totals.peak_bytes


def test_a_recording_without_any_object(tmp_path: Path) -> None:
    loop = Loop()
    loop.mark("alone")
    recording = loop.recorded(tmp_path / "a.tlm")
    found = explain(recording)

    assert (found.bytes, found.count, found.roles) == (0, 0, ())
    assert explain(recording, "alone").count == 0
    with pytest.raises(NoSuchMoment):
        explain(recording, "other")


def test_names_of_a_snapshot_are_shown_with_their_roles(tmp_path: Path) -> None:
    recording = trained(steps=2, blocks=1, unit=UNIT).recorded(tmp_path / "a.tlm")
    found = explain(recording, names={0: Named(Role.WEIGHTS, "h.0.fc.weight")})

    weights = next(each for each in found.roles if each.role == "weights")
    assert weights.names == ("h.0.fc.weight",)


def test_what_only_says_something_odd_breaks_nothing(tmp_path: Path) -> None:
    """Paths of no block, of another address, with an unknown label; nodes without a forward."""
    loop = Loop()
    loop.event(training.MODULE_PATH, 0x1234, 1, 0, training.TORCH)
    block = loop.alloc(training.forward(), UNIT, "Net/.a..b", node=2**63)
    loop.event(training.MODULE_PATH, block + 64, loop.label("Net/other"), 0, training.TORCH)
    loop.event(training.MODULE_PATH, block, 2**40, 0, training.TORCH)
    loop.alloc(training.backward(), UNIT, node=2**64 - 1)
    loop.free(block, training.backward())
    found = explain(loop.recorded(tmp_path / "a.tlm"))

    assert_sums_are_exact(found)
    assert {each.path for each in found.modules if each.path} == {("label 1099511627776",)}


def test_an_address_that_is_allocated_twice_ends_the_first_block_there(tmp_path: Path) -> None:
    loop = Loop()
    first = loop.alloc(training.at(10), 1_000)
    loop.event(training.ALLOC, first, 3_000, loop.site(training.at(11)), training.TORCH)
    loop.alloc(training.at(12), 500)
    recording = loop.recorded(tmp_path / "a.tlm")
    found = explain(recording)

    assert found.bytes == recording.totals.peak_bytes == 3_500
    assert_sums_are_exact(found)


EVENTS = st.lists(
    st.tuples(st.integers(0, 7), st.integers(0, 8), st.integers(1, 10**6)), min_size=1, max_size=60
)
STACKS = (
    training.at(10),
    training.init(),
    training.data(),
    training.forward(),
    training.backward(),
    training.recomputed(),
    training.optimizer(),
    training.zero_grad(),
    training.deepcopy(),
)


@given(EVENTS)
def test_sums_are_exact_whatever_happens(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, int, int]]
) -> None:
    loop = Loop()
    alive: list[int] = []
    level = peak = 0
    for action, phase, size in steps:
        if action < 5 or not alive:
            path = "Net/h.1" if action < 2 else ""
            alive.append(loop.alloc(STACKS[phase], size, path, node=size))
            level += size
        else:
            gone = alive.pop(size % len(alive))
            loop.free(gone, STACKS[phase])
            level -= loop.sizes[gone][0]
        peak = max(peak, level)
    found = explain(loop.recorded(tmp_path_factory.mktemp("a") / "a.tlm"))

    assert found.bytes == peak
    assert_sums_are_exact(found)
    assert all(0 <= each.bytes < peak for each in found.lowered)


def test_positions_follow_the_order_of_events_and_not_their_times(tmp_path: Path) -> None:
    """Two threads at the same time: a free and an allocation in the same tick."""
    loop = Loop()
    first = loop.alloc(training.at(10), 1_000)
    loop.now += training.TICKS_PER_EVENT
    when = loop.now
    loop.free(first, training.at(11))
    loop.now = when
    loop.alloc(training.at(12), 900, thread=2)
    loop.now = when + 4 * training.TICKS_PER_EVENT
    loop.free(loop.alloc(training.at(10), 10), training.at(11))
    recording: Recording = loop.recorded(tmp_path / "a.tlm")

    assert explain(recording).bytes == recording.totals.peak_bytes == 1_000


def test_memory_of_devices() -> None:
    device = np.array([1, 2, 3, 4, 5, 5, 16, 17, 18, 19, 32, 255], np.uint8)
    address = np.zeros(12, np.uint64)
    address[5] = 3 << 56
    names = memory_names(device, address, {"accelerator.3": "xpu Intel Max"})

    assert names.tolist() == [
        *("host", "host", "host", "torch-mapped", "accelerator:0", "xpu:3", "host"),
        *("metal", "sim-metal", "", "device 32", "device 255"),
    ]


def test_blocks_without_bytes_are_left_out(tmp_path: Path) -> None:
    loop = Loop()
    loop.alloc(training.at(10), 0)
    loop.alloc(training.at(10), 5)

    assert blocks_of(loop.recorded(tmp_path / "a.tlm")).size.tolist() == [5]


def test_paths_of_any_depth_and_number_take_little_time(tmp_path: Path) -> None:
    """A file may have a label of 65,535 bytes, and a label for each block."""
    loop = Loop()
    blocks = [loop.alloc(training.forward(), UNIT, "Net/" + ".".join("1" * 30_000))]
    for number in range(30_000):
        blocks.append(loop.alloc(training.forward(), UNIT, f"Net{number}/a.{number}.b.{number}"))
    loop.free_all(blocks, training.backward())
    recording = loop.recorded(tmp_path / "a.tlm", "compact")
    begin = time.process_time()
    found = explain(recording)

    assert time.process_time() - begin < 15
    assert_sums_are_exact(found)
    assert max(len(each.path) for each in found.modules) <= 24


def test_long_runs_whose_gradients_stay_take_little_time(tmp_path: Path) -> None:
    loop = Loop()
    gradients = [loop.alloc(training.backward(), 64 + number % 7) for number in range(300)]
    for _ in range(1_500):
        saved = loop.alloc(training.forward(), UNIT)
        for size in (64, 65):
            loop.free(loop.alloc(training.backward(), size), training.backward())
        loop.free(saved, training.backward())
        loop.free(loop.alloc(training.optimizer(), 64), training.optimizer())
    loop.free_all(gradients, training.at(95))
    recording = loop.recorded(tmp_path / "a.tlm")
    begin = time.process_time()
    found = explain(recording)

    assert time.process_time() - begin < 10
    assert found.moment.steps == 1_500


# ---- who held it, and what was born between two moments ----


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """A reader that keeps every batch; an epoch has 90 of them."""
    return read(write_story(tmp_path_factory.mktemp("story") / "story.tlm"))


def test_lines_have_the_holders_of_that_moment(story: Recording) -> None:
    found = explain(story, "epoch 1", held=True)
    batch = next(each for each in found.lines if each.site.line == 12)
    (holder,) = batch.holders

    assert_sums_are_exact(found)
    assert (batch.count, holder.name, holder.count) == (90, "reader", 90)
    assert str(holder.site) == "/home/ada/train.py:21"
    assert batch.since_ns == int(story.objects["born_ns"].loc[1])
    assert explain(story, "epoch 1").lines[0].holders == ()


def test_a_generation_is_what_was_born_between_two_moments_and_lives(story: Recording) -> None:
    objects = story.objects
    marks = story.marks[story.marks["label"] == "epoch"]["time_ns"].to_numpy()
    born, died = objects["born_ns"], objects["died_ns"]
    own = objects["size_bytes"] > 0
    for text, until in (("epoch 1..epoch 2", None), ("epoch:1 .. epoch:2", "0.9")):
        found = explain(story, until, born=text)
        at = found.moment.time_ns
        there = (born > marks[1]) & (born <= marks[2]) & own & ((died < 0) | (died > at))

        assert_sums_are_exact(found)
        assert found.count == int(there.sum()) == 90
        assert not found.is_peak and found.born == (marks[1], marks[2])
    assert explain(story, "0.5", born="0..0.1").count < explain(story, "0.5").count


def test_objects_in_python_have_the_holder_of_the_snapshot_that_is_nearest() -> None:
    lists = [ChainStep(StepKind.LOCAL, "f\n/a.py\n3", name) for name in ("first", "second")]
    program, kept = Program(), []
    for step in range(200):
        kept.append(program.alloc(30, 4_000))
        program.wait(1_000_000)
        if step in (100, 180):
            chain = [lists[step == 180], ChainStep(StepKind.LIST, "list", "[]", len(kept))]
            program.snapshot((chain, kept, 1.0))
    recording = program.recording()
    numbers = recording.objects.index.to_numpy()[:50]
    times = recording.holdings["time_ns"].tolist()
    near = [Snapshots(recording).chains_of(numbers, at_ns)[0] for at_ns in times]

    assert "'first'" in near[0].words and "'second'" in near[1].words


@pytest.mark.parametrize("born", ["3", "..", "epoch..", "0..lunch"])
def test_two_moments_that_are_none_are_refused_in_a_sentence(story: Recording, born: str) -> None:
    with pytest.raises(NoSuchMoment, match="two moments|no mark"):
        explain(story, born=born)
