"""A recording with a hole in the middle is not judged: frees may be among what is missing."""

from pathlib import Path

import numpy as np
from support import writer

from tlmem.analysis import analyse
from tlmem.events import EVENT_DTYPE
from tlmem.recording.reader import read

STEPS, PER_SLOT = 40_000, 2_000
META = [
    writer.code(1, "/home/user/program.py", "work"),
    writer.site(2, 0, 1, 10),
    writer.site(3, 0, 1, 11),
]


def healthy_program() -> np.ndarray:
    """A ring of 1000 arrays: each new one takes the place of the oldest."""
    rows = np.zeros(2 * STEPS, EVENT_DTYPE)
    rows["ticks"] = 1_000_000 + 25_000 * np.arange(2 * STEPS)
    rows["device"] = 1
    made, freed = rows[::2], rows[1::2]
    made["kind"], made["arg"], made["site"] = 1, 4096, 2
    made["object"] = 0x10000 + 8192 * np.arange(STEPS)
    freed["kind"], freed["site"] = 2, 3
    freed["object"] = 0x10000 + 8192 * (np.arange(STEPS) - 1000)
    freed["kind"][:1000] = 31  # nothing to free yet: another event
    freed["device"][:1000] = 0
    return rows


def outcome(path: Path) -> tuple[str, int, set[str]]:
    recording = read(path)
    analysis = analyse(recording)
    severities = {finding.severity for finding in analysis.findings}
    return analysis.verdict.outcome, recording.missing_events, severities


def test_dropped_blocks_do_not_make_a_leak(tmp_path: Path) -> None:
    file = writer.RecordingWriter(
        form="compact", per_slot=PER_SLOT, codec=-1, meta=META, threads={1: healthy_program()}
    )
    path = file.write(tmp_path / "ring.tlm")
    whole = outcome(path)
    data = bytearray(path.read_bytes())
    starts = [at for at in range(0, len(data), 8) if data[at : at + 5] == b"TLBK\x01"]
    for start in starts[::3]:
        data[start + 140] ^= 255
    path.write_bytes(bytes(data))
    damaged = outcome(path)

    assert whole[1] == 0 and whole[0] != "leak"
    assert damaged[1] > 0
    assert damaged[0] == "cannot-judge"
    assert "error" not in damaged[2]
