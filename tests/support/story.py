"""A program that never ran, as a recording: a training loop whose reader keeps every batch.

Covers: everything that screens show, with times chosen here, so that pictures of screens are the
same on every machine. In each step a scope takes a batch (made at train.py:12), the reader acquires
it (train.py:21) and never releases it, an activation goes through a tape and a backward pass, and
NumPy makes a temporary array in a library (called at train.py:15).
"""

from collections.abc import Sequence
from pathlib import Path

from support import writer
from support.owners import (
    ACQUIRE,
    ALLOC,
    BACKWARD_BEGIN,
    BACKWARD_END,
    CPU,
    FREE,
    POOL_HIT,
    POOL_PUT,
    REGISTER,
    RELEASE,
    SCOPE_ENTER,
    SCOPE_EXIT,
    TAPE_RECORD,
    TAPE_SAVE,
    TAPE_UNSAVE,
    holder,
    of_tape,
)

TICKS_PER_S, START = 2_000_000_000, 1_000_000
MARK, SAMPLE, MISS, DEVICE_ALLOC = 32, 33, 17, 22
NUMPY = 1
STEPS, STEP_S, BEGIN_S, EPOCH = 360, 0.0025, 0.06, 90
BATCH_BYTES, ACTIVATION_BYTES, TEMPORARY_BYTES = 65_536, 16_384, 32_768
LABELS = {1: "step", 2: "reader", 3: "epoch", 4: "tlmem:begin", 5: "tlmem:end", 6: "buffers"}
SCRIPT, LIBRARY = "/home/ada/train.py", "/usr/lib/site-packages/numpy/pad.py"
MULTIPLY = 16
ANON, FILE, MALLOC_USED, MALLOC_FREE, PYTHON_ARENA, PYTHON_LARGE, RECORDER = range(1, 8)


def write_story(
    path: Path,
    form: str = "sealed",
    leaks: bool = True,
    pid: int = 100,
    script: str = SCRIPT,
    more: Sequence[bytes] = (),
) -> Path:
    """Writes the recording and returns its path; ``more`` are names beside its own."""
    main = [_at(0.02, MARK, 4, 0, 0)]
    main += [
        _at(0.05, DEVICE_ALLOC, 0x7000, 8_000_000, 3, device=CPU),
        _at(0.051, ALLOC, 1 << 28 | 1, 4_096, 3, 1, CPU),
        _at(0.052, REGISTER, 1 << 28 | 1, holder(7, 6), 3, 1, CPU),
        _at(0.053, POOL_PUT, 1 << 28 | 1, holder(7, 6), 3, 1, CPU),
    ]
    for step in range(STEPS):
        main += _step(step, leaks)
    main.append(_at(0.97, MARK, 5, 0, 0))
    return writer.RecordingWriter(
        header=writer.Header(pid=pid),
        form=form,
        meta=[*_names(script), *more],
        threads={1: writer.events(main), 2: writer.events(_samples(leaks))},
    ).write(path)


def _at(
    second: float, kind: int, obj: int, arg: int, site: int, count: int = 0, device: int = 0
) -> tuple:
    return (START + round(second * TICKS_PER_S), obj, arg, site, count, kind, device)


def _step(step: int, leaks: bool) -> list[tuple]:
    """The events of one step, 0.1 ms apart."""
    begin, number = BEGIN_S + step * STEP_S, 100 + step
    batch, activation = ((2 + 2 * step + more) << 28 | 1 for more in (0, 1))
    scope, reader, tape = holder(2, number), holder(11, 2), of_tape(MULTIPLY, 10 + step)
    root, address = 1 << 56 | (step + 1) << 28, 0x1000 + 64 * (step % 4)
    rows = [(MARK, 3, step // EPOCH, 3, 0, 0)] if step % EPOCH == 0 else []
    rows += [
        (SCOPE_ENTER, number, 1, 3, 1, 0),
        *([(POOL_PUT, 0, holder(7, 6), 4, 0, 0)] if step % 4 == 0 else []),
        (ALLOC, batch, BATCH_BYTES, 4, 1, CPU),
        (REGISTER, batch, scope, 4, 1, CPU),
        (ACQUIRE, batch, reader, 5, 2, CPU),
        (ALLOC, activation, ACTIVATION_BYTES, 7, 1, CPU),
        (REGISTER, activation, scope, 7, 1, CPU),
        (MISS if step % 4 else POOL_HIT, 0, holder(7, 6), 4, 0, 0),
        (TAPE_RECORD, activation, MULTIPLY << 40 | 10 + step, 7, 1, CPU),
        (TAPE_SAVE, activation, tape, 7, 1, CPU),
        (ACQUIRE, activation, tape, 7, 2, CPU),
        (ALLOC, address, TEMPORARY_BYTES, 8, 0, NUMPY),
        (BACKWARD_BEGIN, root, 10 + step, 3, 0, 0),
        (TAPE_UNSAVE, activation, tape, 3, 2, CPU),
        (RELEASE, activation, tape, 3, 1, CPU),
        (BACKWARD_END, root, 1, 3, 0, 0),
        (FREE, address, 0, 8, 0, NUMPY),
        (RELEASE, activation, scope, 3, 0, CPU),
        (FREE, activation, 0, 3, 0, CPU),
        (RELEASE, batch, scope, 3, 1, CPU),
    ]
    if not leaks:
        rows += [(RELEASE, batch, reader, 5, 0, CPU), (FREE, batch, 0, 5, 0, CPU)]
    rows.append((SCOPE_EXIT, number, 1 if leaks else 2, 3, 0, 0))
    return [_at(begin + 0.0001 * at, *row) for at, row in enumerate(rows)]


def _samples(leaks: bool) -> list[tuple]:
    rows = []
    for sample in range(95):
        second = 0.01 + 0.01 * sample
        steps = min(max((second - BEGIN_S) / STEP_S, 0.0), STEPS)
        kept = round(steps * BATCH_BYTES) if leaks else 0
        python = 6_000_000 + min(sample, 12) * 250_000
        values = {
            ANON: 12_000_000 + python + kept,
            FILE: 9_000_000,
            MALLOC_USED: 3_000_000 + kept,
            MALLOC_FREE: 1_500_000,
            PYTHON_ARENA: python - 2_000_000,
            PYTHON_LARGE: 2_000_000,
            RECORDER: 2_500_000,
        }
        rows += [
            _at(second + 1e-6 * metric, SAMPLE, metric, value, 0)
            for metric, value in values.items()
        ]
    return rows


def _names(script: str) -> list[bytes]:
    notes = {
        "script": script,
        "command": f"train.py --steps {STEPS}",
        "python.sites": "/usr/lib/site-packages",
        f"op.{MULTIPLY}": "multiply",
        "pool.6": "buffers",
        "exit": "0",
    }
    codes = {1: (script, "<module>"), 2: (script, "train"), 3: (script, "Reader.take")}
    codes[4] = (LIBRARY, "pad")
    sites = [(2, 0, 1, 40), (3, 2, 2, 10), (4, 2, 2, 12), (5, 2, 3, 21)]
    sites += [(6, 2, 2, 15), (8, 6, 4, 70), (7, 2, 2, 16)]
    return [
        *(writer.note(*pair) for pair in notes.items()),
        *(writer.label(*pair) for pair in LABELS.items()),
        *(writer.code(number, *about) for number, about in codes.items()),
        *(writer.site(*site) for site in sorted(sites)),
        writer.thread(1, "main", main=True, os_id=100, ticks=START),
        writer.thread(2, "", os_id=101, ticks=START),
    ]


if __name__ == "__main__":
    import sys

    print(write_story(Path(sys.argv[1])))
    for mended in sys.argv[2:]:
        print(write_story(Path(mended), leaks=False))
