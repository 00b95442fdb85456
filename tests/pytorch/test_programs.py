"""Fourteen real programs: recorded, they run as before, and the live set is the truth.

Each program takes the truth inside itself at some moments (``programs/truth.py``): every storage
that a tensor lies in, with its size. The recording must have exactly these blocks alive at the
same moments, address by address.
"""

from pathlib import Path

import pytest
from pytorch.recorded import (
    NAMES,
    OF_TORCH,
    Moment,
    Recorded,
    alive_at,
    compare,
    live,
    record,
    wrong_roles,
)

from tlmem.analysis.peak.blocks import HOST
from tlmem.analysis.peak.explained import Known, explain_known
from tlmem.events import Device, Kind
from tlmem.recording.reader import Recording

pytest.importorskip("torch", reason="needs PyTorch: pip install tlmem[torch]")

HELD_IN_CPP = {"ddp": "DistributedDataParallel._pre_forward"}
"""Frame under which a program makes blocks that no tensor of Python or of the graph refers to: the
buckets in which DDP's reducer sends gradients."""
MOMENTS = {"kv_server": {"forward"}, "quantize": {"forward"}}
"""Programs that only infer; all others are also seen after the backward pass and the step."""


OF_ONE_WORKER = [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in NAMES]
"""Each program is recorded once, and not in each worker of pytest-xdist."""


@pytest.fixture(scope="module", params=OF_ONE_WORKER)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return record(request.param, tmp_path_factory.mktemp(request.param))


def test_there_are_fourteen() -> None:
    assert len(NAMES) == 14


def test_it_prints_and_ends_as_without_recording(run: Recorded) -> None:
    """Losses are printed with nine digits, which tell every two float32 apart."""
    assert (run.recorded.returncode, run.recorded.stdout, run.recorded.stderr) == (
        run.plain.returncode,
        run.plain.stdout,
        run.plain.stderr,
    )
    assert run.plain.returncode == 0, run.plain.stderr.decode()


def test_every_recording_is_whole(run: Recorded) -> None:
    for recording in run.recordings.values():
        assert recording.problems == []
        assert recording.complete


def test_it_took_the_truth_at_each_kind_of_moment(run: Recorded) -> None:
    processes = [moments for pid in run.recordings if (moments := run.moments(pid))]

    assert len(processes) == (2 if run.name == "ddp" else 1)
    for moments in processes:
        expected = MOMENTS.get(run.name, {"forward", "backward", "step"})
        assert {moment.label for moment in moments} == expected
        for moment in moments:
            assert sum(size for size, _ in moment.storages.values()) > 1_000_000


def test_live_blocks_are_the_storages_of_the_truth(run: Recorded) -> None:
    """Except what C++ alone holds: of DDP, the buckets have the bytes of all gradients."""
    for pid, recording in run.recordings.items():
        for moment in run.moments(pid):
            found = compare(recording, moment)
            at = f"{run.name} at {moment.label} {moment.index}"
            assert found.missing == {}, f"{at}: tensors without a block"
            assert found.sizes == {}, f"{at}: bytes of the truth, of the recording"
            if (frame := HELD_IN_CPP.get(run.name)) is None:
                assert found.unexplained == {}, f"{at}: blocks without a tensor"
                continue
            weights = sum(size for size, roles in moment.storages.values() if "weights" in roles)
            assert sum(size for size, _ in found.unexplained.values()) == weights
            assert {frame in stack for _, stack in found.unexplained.values()} == {True}


def test_roles_are_those_of_the_truth_byte_by_byte(run: Recorded) -> None:
    for pid, recording in run.recordings.items():
        if not (moments := run.moments(pid)):
            continue
        known = Known.of(recording)
        for moment in moments:
            wrong = wrong_roles(known, moment)
            total = sum(size for size, *_ in wrong)
            assert wrong == [], f"{run.name} at {moment.label} {moment.index}: {total} bytes"


def test_roles_add_up_to_the_peak_and_to_all_that_is_alive_at_each_mark(run: Recorded) -> None:
    """The peak is taken here from the events themselves, one after the other."""
    for pid, recording in run.recordings.items():
        if not (moments := run.moments(pid)):
            continue
        known = Known.of(recording)
        explained = explain_known(known, memory=HOST)
        assert sum(each.bytes for each in explained.roles) == explained.bytes == peak_of(recording)
        for moment in moments:
            rows = alive_at(known, moment.time_ns)
            alive = live(recording, moment.time_ns)
            of_torch = alive[alive.device.isin(list(map(int, OF_TORCH)))]
            assert int(known.blocks.size[rows].sum()) == int(of_torch.size_bytes.sum())


def peak_of(recording: Recording) -> int:
    """The highest level of memory of the process itself, without mappings."""
    events = recording.events
    sizes = recording.objects.size_bytes.to_dict()
    level = peak = 0
    for kind, device, number in zip(events.kind, events.device, events.object, strict=True):
        if int(device) not in (Device.NUMPY, Device.TORCH) or number not in sizes:
            continue
        if kind in (Kind.ALLOC, Kind.REALLOC):
            level += sizes[number]
        elif kind == Kind.FREE:
            level -= sizes[number]
        peak = max(peak, level)
    return int(peak)


def test_no_memory_of_torch_was_freed_that_was_not_seen(run: Recorded) -> None:
    """Every free has its alloc: a child that was forked may free what it got from its parent."""
    for recording in run.recordings.values():
        if recording.parent_pid == 0:
            assert recording.unknown_frees == 0


def test_the_truth_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tensors that the truth walked over die where the program drops them."""
    import sys
    import weakref

    import torch

    monkeypatch.syspath_prepend(str(Path(__file__).parent / "programs"))
    truth = __import__("truth")
    monkeypatch.setenv(truth.VARIABLE, str(tmp_path))
    model = torch.nn.Linear(4, 4)
    x = torch.ones(2, 4)
    copied = torch._lazy_clone(x)
    loss = model(x).exp().sum()
    saved = weakref.ref(loss.grad_fn.next_functions[0][0]._saved_result)
    before = sys.getrefcount(x)

    truth.take("forward", 0, modules=[model], roots=[loss], inputs=[x])

    assert sys.getrefcount(x) == before
    assert torch._C._is_cow_tensor(copied)
    seen = weakref.ref(x)
    del x, loss
    assert seen() is None and saved() is None
    sys.modules.pop("truth")


def test_without_the_variable_the_truth_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent / "programs"))
    truth = __import__("truth")
    monkeypatch.delenv(truth.VARIABLE, raising=False)
    monkeypatch.setattr(truth, "mark", lambda *_: pytest.fail("a mark was made"))

    truth.take("forward", 0)


def test_the_comparison_sees_what_is_wrong(run: Recorded) -> None:
    """A truth that is changed by one storage differs by that storage."""
    pid = next(pid for pid in run.recordings if run.moments(pid))
    recording, moment = run.recordings[pid], run.moments(pid)[0]
    known = Known.of(recording)
    address, (size, _) = max(
        (item for item in moment.storages.items() if item[1][1][0] == "weights"),
        key=lambda item: item[1][0],
    )
    others = {key: value for key, value in moment.storages.items() if key != address}

    def changed(**storage: tuple[int, list[str]]) -> Moment:
        more = {int(key[1:]): value for key, value in storage.items()}
        return Moment(moment.label, moment.index, moment.time_ns, {**others, **more})

    lost = compare(recording, changed())
    moved = compare(recording, changed(**{f"a{address + 16}": (size, ["weights"])}))
    larger = compare(recording, changed(**{f"a{address}": (size + 4, ["weights"])}))
    swapped = changed(**{f"a{address}": (size, ["activations"])})

    assert lost.unexplained[address][0] == size
    assert moved.missing == {address + 16: size}
    assert larger.sizes == {address: (size + 4, size)}
    assert [(size, role) for size, _, role, _ in wrong_roles(known, swapped)] == [(size, "weights")]
