"""Real recordings, changed: bits flipped, cut, spliced, and rebuilt with right checksums.

Covers: recordings of several kinds, made by the recorder; changes that a checksum would show, and
those that none shows, as they are made in what the blocks hold. Does not cover: files made for one
purpose (``forge``).
"""

import random
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hostile import forge
from support import writer
from support.programs import environment_of

ARRAYS = """
import numpy as np
kept = []
def train(step):
    batch = np.ones(500)
    loss = (batch * step).sum()
    if step % 9 == 0:
        kept.append(batch)
    return loss
for step in range(150):
    train(step)
"""
RUNTIME = """
import tlmem
w = tlmem.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
for step in range(12):
    tlmem.mark("step", step)
    with tlmem.scope("batch"):
        y = ((w @ w).tanh() * 2.0).sum()
        y.backward()
"""
FAMILY = """
import multiprocessing, numpy as np
def work(n):
    return float(np.ones(1000 * (n + 1)).sum())
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(1) as pool:
        pool.map(work, range(5))
    np.ones(100)
"""
KILLED = ARRAYS + "\nimport os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n"
PROGRAMS: dict[str, tuple[str, list[str]]] = {
    "arrays": (ARRAYS, []),
    "family": (FAMILY, []),
    "killed": (KILLED, []),
    "runtime": (RUNTIME, []),
}


@cache
def real(kind: str) -> bytes:
    """The bytes of a recording that the recorder made; of a folded one, which is long, like it."""
    if kind == "folded":
        return folded()
    program, options = PROGRAMS[kind]
    with TemporaryDirectory() as folder:
        (Path(folder) / "program.py").write_text(program)
        words = ["record", "-q", *options, "-o", "r.tlm", "program.py"]
        subprocess.run(
            [sys.executable, "-m", "tlmem", *words],
            cwd=folder,
            env=environment_of({}),
            capture_output=True,
            check=False,
            timeout=600,
        )
        files = sorted(Path(folder).glob("*.tlm"), key=lambda path: path.stat().st_size)
        assert files, f"nothing was recorded of the program '{kind}'"
        return files[-1].read_bytes()


def folded() -> bytes:
    """A recording of which the first 1,000 events are only in a checkpoint."""
    sums = [1000, forge.FIRST + 400_000, 600, 60_000, 400, 40_000, 0, 20_000, 200, 25_000]
    sums += [forge.FIRST + 300_000, 220, 600, 1, 200, 0, 0, 2, 0]
    live = np.zeros((200, 5), "<u8")
    live[:, 0] = np.arange(200) * 3
    live[:, 1] = forge.FIRST + 400 + np.arange(200) * 1000
    live[:, 2], live[:, 3] = 64 * (1 + np.arange(200)), 100
    live.view("u1").reshape(200, 40)[:, 38] = 1
    live.view("<u4").reshape(200, 10)[:, 8] = 2
    samples = np.array([[forge.FIRST + 400 + n, 1 + n % 4, 1 << 22] for n in range(90)], "<u8")
    marks = forge.rows(9, np.array([forge.MARK] * 7 + [forge.MISUSE] * 2, "u1"), object=3)
    sections = {
        0: np.array(sums, "<u8").tobytes(),
        1: struct.pack("<6QII", 600, 60_000, 400, 40_000, 400, forge.FIRST + 400, 2, 1),
        2: struct.pack("<QQ", 1000, 1),
        3: samples.tobytes(),
        4: marks.tobytes(),
        5: live.tobytes(),
    }
    events = forge.rows(3000, ticks=forge.FIRST + 500_000 + np.arange(3000, dtype=np.uint64) * 4000)
    events["kind"][1::2] = forge.FREE
    events["object"][1::2] = events["object"][::2]
    return forge.file(
        [*writer.fold_blocks(7, sections), *forge.blocks_of(events, first=1000)],
        names=forge.base_names(),
        header=forge.fold_header(),
    )


@dataclass(frozen=True)
class Block:
    """One block, its columns inflated."""

    type: int
    head: tuple[int, ...]
    columns: tuple[bytes, ...]

    NAMES = ("codec", "part", "seq", "thread", "count", "first", "begin", "end")
    BITS = (8, 16, 64, 32, 32, 64, 64, 64)

    def packed(self) -> bytes:
        """The block with right checksums."""
        about = dict(zip(self.NAMES, self.head, strict=True))
        made = forge.dense(self.type, list(self.columns), **about)
        return made if len(made) < writer.SLOT_BYTES - 200 else b""


def blocks_of_file(data: bytes) -> list[Block]:
    """Every block of a file, and what its raw slots hold as blocks of plain events or names."""
    found = []
    for at in range(writer.HEADER_BYTES, len(data), writer.SLOT_BYTES):
        slot = data[at : at + writer.SLOT_BYTES]
        if slot[:4] != b"TLSG":
            continue
        seq, thread, _, first, count, used = struct.unpack_from("<QIIQII", slot, 8)
        if slot[4] == 1:
            events = np.frombuffer(slot, writer.EVENT, (len(slot) - 128) // 32, 128)
            events = events[: int((events["kind"] == 0).argmax()) or len(events)]
            head = (0, 0, seq, thread, len(events), first, 0, 2**63)
            found.append(Block(1, head, (events.tobytes(),)))
        elif slot[4] == 3:
            found.append(Block(2, (0, 0, seq, 0, 0, 0, 0, 0), (slot[128 : 128 + used],)))
        elif slot[4] == 2:
            inside = 128
            while inside + 128 <= 128 + used and slot[inside : inside + 4] == b"TLBK":
                one = slot[inside:]
                kind, codec, part, *head = struct.unpack_from("<BBHQIIQQQI", one, 4)
                *head, size = head
                if kind != 4:
                    columns = tuple(forge.columns_of(one))
                    while columns and not columns[-1]:
                        columns = columns[:-1]
                    found.append(Block(kind, (codec, part, *head), columns))
                inside += 128 + (size + 7 & ~7)
    return found


INTERESTING = (0, 1, 2, 7, 8, 127, 128, 255, 2**15, 2**16 - 1, 2**31, 2**32 - 1)
INTERESTING += (2**40, 2**52, 2**53, 2**62, 2**63 - 1, 2**63, 2**64 - 1)


def number(chance: random.Random, bits: int) -> int:
    """A number that a field of so many bits can have, often one at an edge."""
    edge = chance.choice(INTERESTING) + chance.choice((-1, 0, 0, 1))
    return (edge if chance.random() < 0.7 else chance.getrandbits(bits)) % 2**bits


def changed_bytes(data: bytes, chance: random.Random, least: int = 0) -> bytes:
    """Some bytes of a column are others; its length mostly stays."""
    made = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 5, 40))):
        if len(made) <= least:
            break
        at = chance.randrange(least, len(made))
        how = chance.randrange(5)
        if how == 0:
            made[at] ^= 1 << chance.randrange(8)
        elif how == 1:
            made[at] = chance.choice((0, 1, 255, chance.randrange(256)))
        elif how == 2:
            size = chance.choice((2, 4, 8))
            at -= at % size
            made[at : at + size] = number(chance, 8 * size).to_bytes(size, "little")
        elif how == 3:
            size, source = chance.choice((8, 32, 300)), chance.randrange(len(made))
            made[at : at + size] = made[source : source + size]
        else:
            made[at : at + chance.choice((8, 64))] = bytes(chance.choice((8, 64)))
    return bytes(made[: len(data)]).ljust(len(data), b"\0")


def changed_names(data: bytes, chance: random.Random) -> bytes:
    """Names of which some say something else, with right checksums."""
    records, at = [], 0
    while at + 16 <= len(data):
        whole, size, _, kind = struct.unpack_from("<IIIB", data, at)
        if whole < 16:
            break
        records.append((kind, data[at + 16 : at + 16 + size]))
        at += whole
    for _ in range(chance.choice((1, 1, 3, 30))):
        if not records:
            break
        which = chance.randrange(len(records))
        kind, payload = records[which]
        how = chance.randrange(6)
        if how == 0:
            payload = payload[: chance.randrange(len(payload) + 1)]
        elif how == 1:
            payload += chance.randbytes(chance.choice((1, 40, 3000)))
        elif how == 2:
            kind = chance.choice((1, 2, 3, 4, 5, 6, kind, kind, 200))
        elif how == 3:
            records.insert(which, chance.choice(records))
        else:
            payload = changed_bytes(payload, chance)
        records[which] = kind, payload
    if chance.random() < 0.2:
        chance.shuffle(records)
    return b"".join(writer.record(kind, payload) for kind, payload in records)


def rebuilt(data: bytes, chance: random.Random, other: bytes) -> bytes:
    """The file with changes that no checksum shows."""
    blocks = blocks_of_file(data)
    if chance.random() < 0.3:
        blocks += chance.sample(more := blocks_of_file(other), min(3, len(more)))
    for _ in range(chance.choice((1, 1, 2, 4))):
        which = chance.randrange(len(blocks))
        block = blocks[which]
        how = chance.random()
        if how < 0.15:
            head = list(block.head)
            field = chance.randrange(len(head))
            head[field] = number(chance, block.BITS[field])
            block = replace(block, head=tuple(head))
        elif how < 0.25:
            blocks.insert(chance.randrange(len(blocks)), block)
        elif how < 0.3:
            chance.shuffle(blocks)
        elif block.columns:
            at = chance.randrange(len(block.columns))
            column = block.columns[at]
            columns = list(block.columns)
            columns[at] = (
                changed_names(column, chance) if block.type == 2 else changed_bytes(column, chance)
            )
            block = replace(block, columns=tuple(columns))
        blocks[which] = block
    header = bytearray(data[: writer.HEADER_BYTES])
    if chance.random() < 0.3:
        at = 64 + 8 * chance.randrange(13)
        header[at : at + 8] = number(chance, 64).to_bytes(8, "little")
    header[104] = 1  # unsealed: there is no index
    return bytes(header) + b"".join(
        writer.packed([made for block in blocks if (made := block.packed())], 2, 100)
    )


def flipped(data: bytes, chance: random.Random, other: bytes) -> bytes:
    """Some bits are others, more often where there is something."""
    made = bytearray(data)
    for _ in range(chance.choice((1, 1, 8, 200))):
        for _ in range(20):
            at = chance.randrange(len(made))
            if made[at]:
                break
        made[at] ^= 1 << chance.randrange(8)
    return bytes(made)


def cut(data: bytes, chance: random.Random, other: bytes) -> bytes:
    """The file ends somewhere."""
    return data[: chance.randrange(len(data))]


def spliced(data: bytes, chance: random.Random, other: bytes) -> bytes:
    """A stretch of it is from another recording, or from another place."""
    made = bytearray(data)
    for _ in range(chance.choice((1, 3))):
        size = chance.choice((8, 128, 4096, writer.SLOT_BYTES))
        grain = 8 if size < writer.SLOT_BYTES else writer.SLOT_BYTES
        first = writer.HEADER_BYTES if size == writer.SLOT_BYTES else 0
        source = chance.choice((other, data))
        at, begin = (
            first + chance.randrange(max(len(of) - first, grain)) // grain * grain
            for of in (data, source)
        )
        made[at : at + size] = source[begin : begin + size]
    return bytes(made)


CHANGES: tuple[Callable[[bytes, random.Random, bytes], bytes], ...] = (
    *(rebuilt, rebuilt, rebuilt),
    *(flipped, cut, spliced),
)


def mutant(seed: str) -> bytes:
    """A changed recording; the same for the same seed."""
    chance = random.Random(seed)
    kinds = [*PROGRAMS, "folded"]
    data, other = real(chance.choice(kinds)), real(chance.choice(kinds))
    return chance.choice(CHANGES)(data, chance, other)[: forge.MOST_BYTES]
