"""The names that users of the seeds would type: variables of the environment (S28), statistics of
the pool (S27), ``markEscaped``. Each does what the name of tlmem does."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

import tlmem
from tlmem.runtime.core import lib

MB = 1 << 20
FIVE = (
    "tl_get_gpu_total_allocated_bytes",
    "tl_get_gpu_free_count",
    "tl_get_gpu_free_bytes",
    "tl_get_gpu_pool_hit_rate",
    "tl_dump_gpu_pool_stats",
)


def alone(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A program in a process of its own, where no device was used yet."""
    clean = {k: v for k, v in os.environ.items() if not k.endswith("GPU_PREALLOCATE_MB")}
    done = subprocess.run(
        [sys.executable, "-c", f"import tlmem\n{code}"],
        env={**clean, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done


RESERVED = """
sim = tlmem.device("sim-metal")
tlmem.zeros(4, device=sim)
print(sim.buffers().reserved_bytes)
"""


@pytest.mark.parametrize(
    ("environment", "megabytes"),
    [
        ({}, 0),
        ({"TL_GPU_PREALLOCATE_MB": "3"}, 3),
        ({"TLMEM_GPU_PREALLOCATE_MB": "2"}, 2),
        ({"TL_GPU_PREALLOCATE_MB": "3", "TLMEM_GPU_PREALLOCATE_MB": "2"}, 2),
        ({"TL_GPU_PREALLOCATE_MB": "3", "TLMEM_GPU_PREALLOCATE_MB": ""}, 3),
        ({"TL_GPU_PREALLOCATE_MB": ""}, 0),
    ],
)
def test_memory_is_reserved_under_either_name(environment: dict[str, str], megabytes: int) -> None:
    assert alone(RESERVED, **environment).stdout.strip() == str(megabytes * MB)


def test_a_value_that_is_no_number_is_reported_under_the_name_that_was_set() -> None:
    said = alone(f"{RESERVED}print(sim.dump())", TL_GPU_PREALLOCATE_MB="some").stdout
    assert said.startswith("0\n")
    assert "TL_GPU_PREALLOCATE_MB is ignored" in said.replace("TLMEM_GPU", "other")


def test_the_statistics_of_the_pool_are_those_of_the_device() -> None:
    done = alone(
        """
from tlmem.runtime.core import lib
sim = tlmem.device("sim-metal")
sim.policy("persistent-reusing")
for turn in range(3):
    kept = [tlmem.zeros(1000, device=sim) for _ in range(4)]
    del kept
    found = sim.buffers()
    assert tlmem.tl_get_gpu_total_allocated_bytes() == found.total_allocated_bytes > 0
    assert tlmem.tl_get_gpu_free_count() == found.free_count == 4
    assert tlmem.tl_get_gpu_free_bytes() == found.free_bytes > 16000
    assert tlmem.tl_get_gpu_pool_hit_rate() == found.hit_rate == turn / (turn + 1)
tlmem.tl_dump_gpu_pool_stats()
lib.tlm_dump_gpu_pool_stats()
print(sim.dump())
"""
    )
    assert done.stdout.strip()
    assert done.stderr.count(done.stdout.strip()) == 2


def test_nothing_was_asked_of_the_pool_yet() -> None:
    assert alone(
        "print(tlmem.tl_get_gpu_pool_hit_rate(), tlmem.tl_get_gpu_free_bytes())"
    ).stdout == ("0.0 0\n")


def test_the_five_are_in_the_library_too() -> None:
    in_c = [name.replace("tl_", "tlm_", 1) for name in FIVE]
    assert all(hasattr(lib, name) for name in in_c)
    assert all(callable(getattr(tlmem, name)) for name in FIVE)


# ---- markEscaped ----


class Foreign:
    """A tensor as ts-torch has it."""

    def __init__(self) -> None:
        self.handle, self.escaped, self.marked, self.freed = object(), False, 0, 0

    def markEscaped(self) -> None:  # noqa: N802
        self.escaped = True
        self.marked += 1

    def free(self) -> None:
        self.freed += 1


def test_a_thing_with_mark_escaped_in_camel_case_is_scoped() -> None:
    kept, dropped = Foreign(), Foreign()
    with tlmem.scope("s"):
        tlmem.register(kept)
        tlmem.register(dropped)
        assert tlmem.scope_tensor_count() == 2
        assert tlmem.escape(kept) is kept
    assert (kept.escaped, kept.marked, kept.freed) == (True, 1, 0)
    assert (dropped.escaped, dropped.marked, dropped.freed) == (False, 0, 1)


def test_one_that_no_scope_has_is_only_marked() -> None:
    thing = Foreign()
    with tlmem.scope("s"):
        tlmem.escape(thing)
    assert (thing.marked, thing.freed) == (1, 0)


def test_a_thing_with_neither_spelling_is_refused_by_name() -> None:
    class Half:
        handle, escaped = 1, False

    with tlmem.scope("s"), pytest.raises(TypeError, match=r"no mark_escaped; .*\(or markEscaped\)"):
        tlmem.register(Half())


@pytest.mark.parametrize("make", [lambda: tlmem.ones(2), lambda: tlmem.struct([tlmem.ones(2)])])
def test_tensors_and_structs_have_both_spellings(make: Any) -> None:
    thing = make()
    assert not thing.escaped
    thing.markEscaped()
    assert thing.escaped
