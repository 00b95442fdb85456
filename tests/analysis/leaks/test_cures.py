"""Cures fit who holds what leaks: one for each class, and others for some holders."""

import pytest
from support.summaries import process_of
from support.traces import Program

from tlmem.analysis import analyse
from tlmem.analysis.leaks.cures import CURES, FIXES, fix_of
from tlmem.analysis.model import Finding
from tlmem.events import Device
from tlmem.recording.format.chains import ChainStep as Step
from tlmem.recording.format.chains import StepKind
from tlmem.report import FORMATS
from tlmem.report.summary import Summary

STEPS = 400
LINE, OTHERS = 10, 90
VARIABLE = Step(StepKind.MODULE, "__main__", "kept")


def listed(items: int) -> Step:
    return Step(StepKind.LIST, "list", "[]", items)


def keyed(items: int) -> Step:
    return Step(StepKind.DICT, "dict", "[]", items)


def kept(*steps: Step, device: int = Device.TORCH, used: float = 1.0, released: int = 0) -> Program:
    """In each step something is kept, which snapshots see held by ``steps``.

    Args:
        used: share of the memory that what is kept shows.
        released: one in so many is released 40 steps later; 0: none.
    """
    program = Program()
    alive: list[int] = []
    for step in range(STEPS):
        alive.append(program.alloc(LINE, 8_000, device))
        program.temporary(OTHERS)
        program.wait(1_000_000)
        if released and step >= 40 and step % released == 0:
            program.free(alive.pop(len(alive) - 40))
        if step in (200, 300, STEPS - 1):
            program.snapshot((list(steps), list(alive), used))
    return program


def cause(program: Program) -> Finding:
    found = analyse(program.recording())
    assert found.verdict.outcome == "leak"
    (of_class,) = [f for f in found.findings if f.kind in FIXES]
    return of_class


HOLDERS: dict[str, tuple[list[Step], str]] = {
    "a list": ([VARIABLE, listed(300)], "limit the container's size"),
    "a finalizer": (
        [
            Step(StepKind.CLASS, "weakref.finalize", "_registry"),
            keyed(300),
            Step(StepKind.INSTANCE, "weakref.finalize._Info", "func"),
            Step(StepKind.METHOD, "method", "__self__"),
            Step(StepKind.INSTANCE, "__main__.Result", "spec"),
        ],
        "give weakref.finalize a function and arguments that do not refer to the object",
    ),
    "a dict with weak keys": (
        [
            VARIABLE,
            Step(StepKind.INSTANCE, "weakref.WeakKeyDictionary", "data"),
            keyed(300),
            Step(StepKind.INSTANCE, "__main__.Stats", "feats"),
        ],
        "let no value refer to its key",
    ),
    "an exception": (
        [
            VARIABLE,
            listed(300),
            Step(StepKind.EXCEPTION, "__main__.BadBatch"),
            Step(StepKind.LOCAL, "check", "batch"),
        ],
        "keep what the exception says (str(error)), or drop its frames",
    ),
    "what an exception was given": (
        [VARIABLE, listed(300), Step(StepKind.EXCEPTION, "__main__.BadBatch", "batch")],
        "limit the container's size",
    ),
    "a task that waits": (
        [
            VARIABLE,
            Step(StepKind.SET, "set", "[]", 300),
            Step(StepKind.OTHER, "_asyncio.Task"),
            Step(StepKind.GENERATOR, "watch\n/home/user/program.py\n9", "window"),
        ],
        "let the tasks end: cancel() those",
    ),
    "threads that go on": (
        [VARIABLE, Step(StepKind.THREAD, "_thread._local", "buffer")],
        "let the threads end",
    ),
    "calls that have not returned": (
        [Step(StepKind.LOCAL, "work\n/home/user/program.py\n13", "item")],
        "let the calls return",
    ),
    "a chain of like objects": (
        [
            VARIABLE,
            Step(StepKind.INSTANCE, "__main__.State", "prev"),
            Step(StepKind.INSTANCE, "__main__.State", "prev"),
            Step(StepKind.INSTANCE, "__main__.State", "obs"),
        ],
        "cut the chain where its older part is no longer needed",
    ),
    "figures that are open": (
        [
            Step(StepKind.CLASS, "matplotlib._pylab_helpers.Gcf", "figs"),
            Step(StepKind.DICT, "collections.OrderedDict", "[]", 300),
            Step(StepKind.INSTANCE, "matplotlib.backend_bases.FigureManagerBase", "canvas"),
        ],
        "close figures that have been shown or saved",
    ),
    "calls that an event loop will make": (
        [
            VARIABLE,
            Step(StepKind.INSTANCE, "asyncio.unix_events._UnixSelectorEventLoop", "_scheduled"),
            listed(300),
            Step(StepKind.INSTANCE, "asyncio.events.TimerHandle", "_args"),
            Step(StepKind.TUPLE, "tuple", "[0]", 1),
        ],
        "cancel() what call_later() returned",
    ),
    "a cycle over what makes new items": (
        [VARIABLE, Step(StepKind.OTHER, "itertools.cycle"), listed(300), listed(2)],
        "do not give itertools.cycle what makes new items",
    ),
    "what one of two iterators has not read": (
        [
            VARIABLE,
            Step(StepKind.OTHER, "itertools._tee"),
            Step(StepKind.OTHER, "itertools._tee_dataobject"),
        ],
        "read all iterators of itertools.tee equally far",
    ),
    "columns of a frame": (
        [
            VARIABLE,
            Step(StepKind.INSTANCE, "pandas.DataFrame", "_mgr"),
            Step(StepKind.INSTANCE, "pandas.core.internals.managers.BlockManager"),
            Step(StepKind.TUPLE, "tuple", "[]", 300),
            Step(StepKind.INSTANCE, "pandas.core.internals.blocks.NumpyBlock"),
            Step(StepKind.VIEW, "numpy.ndarray", "base"),
        ],
        "drop columns or rows that are no longer needed",
    ),
    "a cache of a function": (
        [VARIABLE, Step(StepKind.LRU_CACHE, "__main__.bias", "[]", 300)],
        "give the cache a maxsize",
    ),
    "a cache of a method": (
        [VARIABLE, Step(StepKind.LRU_CACHE, "__main__.Model.encode", "[]", 300)],
        "give the cache a maxsize, or clear it (cache_clear()); of a method",
    ),
    "a queue": (
        [
            VARIABLE,
            Step(StepKind.INSTANCE, "queue.Queue", "queue"),
            Step(StepKind.DEQUE, "deque", "[]", 300),
        ],
        "give the queue a maxsize",
    ),
    "a queue of asyncio": (
        [
            VARIABLE,
            Step(StepKind.INSTANCE, "asyncio.queues.LifoQueue", "_queue"),
            listed(300),
        ],
        "give the queue a maxsize",
    ),
    "a deque": ([VARIABLE, Step(StepKind.DEQUE, "deque", "[]", 300)], "give the deque a maxlen"),
}


@pytest.mark.parametrize("name", HOLDERS)
@pytest.mark.parametrize("device", [Device.NUMPY, Device.TORCH])
def test_the_cure_is_that_of_the_holder(name: str, device: int) -> None:
    steps, words = HOLDERS[name]
    found = cause(kept(*steps, device=device))

    assert found.kind == "cache-only-grows"
    assert fix_of(found).startswith(words)


def test_what_only_a_graph_keeps_has_no_say_in_the_cure() -> None:
    program, numbers = Program(), []
    for _ in range(STEPS):
        numbers.append(program.alloc(LINE, 8_000, Device.TORCH))
        program.temporary(OTHERS)
        program.wait(1_000_000)
    error = [Step(StepKind.EXCEPTION, "ValueError"), Step(StepKind.LOCAL, "check", "batch")]
    saved = [Step(StepKind.OTHER, "torch.Tensor")]
    program.snapshot(
        ([VARIABLE, listed(180), *error], numbers[:180], 1.0), (saved, numbers[180:], 1.0)
    )

    assert fix_of(cause(program)).startswith("keep what the exception says")


@pytest.mark.parametrize(
    ("first", "words"), [(220, "are kept, 55% of them by list"), (400, "are kept by list")]
)
def test_the_cause_says_how_many_of_them_its_holder_has(first: int, words: str) -> None:
    program = Program()
    numbers: list[int] = []
    for _ in range(STEPS):
        numbers.append(program.alloc(LINE, 8_000))
        program.temporary(OTHERS)
        program.wait(1_000_000)
    other = Step(StepKind.MODULE, "__main__", "others")
    chains = [([VARIABLE, listed(first)], numbers[:first], 1.0)]
    if first < STEPS:
        chains.append(([other, listed(STEPS - first)], numbers[first:], 1.0))
    program.snapshot(*chains)

    assert words in cause(program).evidence


def test_a_small_part_of_what_is_kept_is_to_be_copied() -> None:
    found = cause(kept(VARIABLE, listed(300), device=Device.TORCH, used=0.02))

    assert found.kind == "view-pins-base"
    assert "keep a copy of the part that is needed (copy(), of a tensor clone())" in fix_of(found)


@pytest.mark.parametrize(
    ("used", "words"),
    [
        (1.0, "let go of tensors that have been used, or limit what keeps them"),
        (0.02, "keep a clone() of the part that is needed, and let go of the rest"),
    ],
)
def test_copies_are_no_cure_for_shared_memory_that_is_used_as_a_whole(
    used: float, words: str
) -> None:
    found = cause(kept(VARIABLE, listed(300), device=Device.TORCH_MAPPED, used=used))

    assert found.kind == "shared-memory-kept"
    assert fix_of(found).startswith(words)


@pytest.mark.parametrize("device", [Device.NUMPY, Device.TORCH])
def test_a_container_that_lets_go_of_some_has_a_cause_and_a_cure(device: int) -> None:
    found = cause(kept(VARIABLE, keyed(250), device=device, released=4))

    assert found.kind == "cache-only-grows"
    assert "are kept by dict 'kept' (module __main__, 250 items). Others" in found.evidence
    assert found.evidence.endswith("were released, but the number that is kept grows.")
    assert "none that was kept" not in found.evidence
    assert fix_of(found) == FIXES["cache-only-grows"]


def test_a_holder_that_is_no_container_has_no_such_cause() -> None:
    attribute = Step(StepKind.INSTANCE, "__main__.Node", "value")
    found = analyse(kept(VARIABLE, attribute, released=4).recording())

    assert found.verdict.outcome == "leak"
    assert [f.kind for f in found.findings if f.kind in FIXES] == []


def test_every_cure_is_of_classes_that_there_are() -> None:
    assert {kind for cure in CURES for kind in cure.classes} <= set(FIXES)


@pytest.mark.parametrize("format", FORMATS)
def test_reports_show_the_cure_that_fits(format: str) -> None:
    program = kept(*HOLDERS["a deque"][0], device=Device.NUMPY)
    shown = " ".join(FORMATS[format](Summary((process_of(program),))).split())
    shown = shown.replace("&#40;", "(").replace("&#41;", ")")

    assert "give the deque a maxlen, or take out what is no longer needed (popleft())" in shown
    assert FIXES["cache-only-grows"] not in shown


@pytest.mark.parametrize("is_seen", [False, True])
def test_a_history_that_is_joined_anew_has_a_cause_and_a_cure(is_seen: bool) -> None:
    program = Program()
    whole = program.join(10, 20, times=399)
    if is_seen:
        program.snapshot(([VARIABLE], [whole], 1.0))
    found = cause(program)

    assert found.kind == "cache-only-grows"
    kept = " is kept by variable 'kept', module __main__: the" if is_seen else " is the"
    assert f"1 array allocated at program.py:10{kept} last of 399, each the one" in found.evidence
    assert "join only the part that is still used" in fix_of(found)
