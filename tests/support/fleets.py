"""Processes that never ran, as recordings: ranks of one program, of which some keep what they make.

Covers: marks of steps, NumPy arrays that are made and freed, samples of resident memory, notes of
who a process is. All are alike but for what is asked for. Does not cover: what tlmem's runtime
records; see ``support.story``.
"""

from collections.abc import Iterable
from pathlib import Path

from support import writer

TICKS_PER_S, START = 2_000_000_000, 1_000_000
ALLOC, FREE, MARK, SAMPLE = 1, 2, 32, 33
NUMPY = 1
STEPS, STEP_S, BEGIN_S = 120, 0.025, 0.06
BATCH_BYTES, KEPT_BYTES, BASE_BYTES = 200_000, 801_000, 20_000_000
SCRIPT = "/home/ada/ranks.py"
LABELS = {3: "step", 4: "tlmem:begin", 5: "tlmem:end"}
ANON, FILE, MALLOC_USED, MALLOC_FREE, PYTHON_ARENA, PYTHON_LARGE, RECORDER = range(1, 8)


def write_rank(
    path: Path,
    rank: int | None = 0,
    *,
    pid: int = 100,
    parent_pid: int = 0,
    host: str = "",
    kept_bytes: int = 0,
    line: int = 12,
    base_bytes: int = BASE_BYTES,
    native_bytes: int = 3_000_000,
    frees_at_end: bool = True,
    steps: int = STEPS,
    notes: dict[str, str] | None = None,
) -> Path:
    """Writes the recording of one process and returns its path.

    Args:
        rank: None: the process does not know one.
        kept_bytes: so many bytes are kept in each step, made at ``ranks.py:line``.
        base_bytes: one array of this size lives from the first step to the end.
        native_bytes: memory that is no array's.
        frees_at_end: what was kept is freed as the program ends, so that nothing of it is left.
    """
    rows = [_at(0.02, MARK, 4, 0, 0), _at(0.05, ALLOC, 0x10_0000, base_bytes, 3, NUMPY)]
    kept = []
    for step in range(steps):
        second = BEGIN_S + step * STEP_S
        rows.append(_at(second, MARK, 3, step, 0))
        batch = 0x20_0000 + 64 * (step % 4)
        rows.append(_at(second + 0.001, ALLOC, batch, BATCH_BYTES, 4, NUMPY))
        if kept_bytes:
            kept.append(0x100_0000 + 0x100_0000 * step)
            rows.append(_at(second + 0.002, ALLOC, kept[-1], kept_bytes, 5, NUMPY))
        rows.append(_at(second + 0.005, FREE, batch, 0, 4, NUMPY))
    end = BEGIN_S + steps * STEP_S + 0.01
    rows.append(_at(end, MARK, 5, 0, 0))
    if frees_at_end:
        gone = [0x10_0000, *kept]
        rows += [
            _at(end + 1e-6 * (1 + at), FREE, each, 0, 3, NUMPY) for at, each in enumerate(gone)
        ]
    told = {"script": SCRIPT, "command": "ranks.py", "exit": "0"}
    told |= {"rank": str(rank), "world_size": "64"} if rank is not None else {}
    told |= ({"host": host} if host else {}) | (notes or {})
    codes = {1: (SCRIPT, "<module>"), 2: (SCRIPT, "step")}
    sites = [(2, 0, 1, 40), (3, 2, 1, 8), (4, 2, 2, 10), (5, 2, 2, line)]
    return writer.RecordingWriter(
        header=writer.Header(pid=pid, parent_pid=parent_pid),
        form="sealed",
        meta=[
            *(writer.note(*pair) for pair in told.items()),
            *(writer.label(*pair) for pair in LABELS.items()),
            *(writer.code(number, *about) for number, about in codes.items()),
            *(writer.site(*site) for site in sites),
            writer.line(2, line, b"kept.append(batch * 2)"),
            writer.thread(1, "main", main=True, os_id=pid, ticks=START),
            writer.thread(2, "", os_id=pid + 1, ticks=START),
        ],
        threads={
            1: writer.events(rows),
            2: writer.events(_samples(steps, base_bytes, kept_bytes, native_bytes)),
        },
    ).write(path)


def write_fleet(
    folder: Path, count: int, leaking: Iterable[int] = (), hosts: str = "ab", **about: object
) -> Path:
    """Writes ``count`` ranks, of which some keep ``KEPT_BYTES`` a step; returns the folder.

    Rank 37 is process 20,037 on the node ``hosts[37 * len(hosts) // count]``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    keeping = set(leaking)
    for rank in range(count):
        write_rank(
            folder / f"r{rank:04}.tlm",
            rank,
            pid=20_000 + rank,
            host=hosts[rank * len(hosts) // count],
            kept_bytes=KEPT_BYTES if rank in keeping else 0,
            **about,  # type: ignore[arg-type]
        )
    return folder


def _at(second: float, kind: int, obj: int, arg: int, site: int, device: int = 0) -> tuple:
    return (START + round(second * TICKS_PER_S), obj, arg, site, 0, kind, device)


def _samples(steps: int, base: int, kept_bytes: int, native: int) -> list[tuple]:
    rows = []
    last = BEGIN_S + steps * STEP_S
    for sample in range(int(last / 0.01)):
        second = 0.01 + 0.01 * sample
        done = int(min(max((second - BEGIN_S) / STEP_S, 0.0), steps))
        kept = done * kept_bytes + (base if second > 0.05 else 0)
        values = {
            ANON: 12_000_000 + native + kept,
            FILE: 9_000_000,
            MALLOC_USED: native + kept,
            MALLOC_FREE: 1_500_000,
            PYTHON_ARENA: 6_000_000,
            PYTHON_LARGE: 2_000_000,
            RECORDER: 2_500_000,
        }
        rows += [
            _at(second + 1e-6 * metric, SAMPLE, metric, value, 0)
            for metric, value in values.items()
        ]
    return rows


if __name__ == "__main__":
    import sys

    print(write_fleet(Path(sys.argv[1]), 24, [5]))
