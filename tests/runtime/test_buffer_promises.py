"""What buffers of a device promise, S25 to S28, and what bookkeeping takes, S51."""

import os
import subprocess
import sys

import numpy as np
import pytest

from tlmem._native import lib
from tlmem.runtime.device import Device, device
from tlmem.runtime.ownership.scope import scope
from tlmem.runtime.tensors import factories

COUNT = 10
LARGE = (1 << 20,)
PAGE = os.sysconf("SC_PAGESIZE")


def sim_in_a_process_of_its_own(code: str, **environment: str) -> list[str]:
    """What the code prints about a fresh sim-metal, word by word."""
    begin = (
        "from tlmem.runtime.tensors import factories\n"
        "from tlmem.runtime.device import device\n"
        "sim = device('sim-metal')\n"
    )
    return subprocess.run(
        [sys.executable, "-c", begin + code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()


@pytest.fixture
def sim() -> Device:
    """sim-metal, direct again afterwards: no buffer is kept from one test to the next."""
    found = device("sim-metal")
    found.policy("direct")
    yield found
    found.policy("direct")


# ---- S25: the persistent pool, phase 1 ----


def test_s25_phase_1_never_serves_from_what_it_keeps(sim: Device, trace) -> None:
    sim.policy("persistent")
    before = sim.buffers()
    with trace() as t:
        for _ in range(COUNT):
            factories.zeros(LARGE, device=sim)
    after = sim.buffers()

    assert (after.hits - before.hits, after.misses - before.misses) == (0, COUNT)
    assert after.free_count - before.free_count == COUNT
    assert t.count("DEVICE_ALLOC") == COUNT
    assert t.count("DEVICE_FREE") == 0
    assert t.count("POOL_MISS") == t.count("POOL_PUT") == t.count("FREE") == COUNT
    assert t.count("POOL_HIT") == 0


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="resident memory is read there")
def test_s25_phase_1_drops_the_contents_and_keeps_the_address_space() -> None:
    said = sim_in_a_process_of_its_own(
        "import os\n"
        "def resident():\n"
        "    return int(open('/proc/self/statm').read().split()[1]) * os.sysconf('SC_PAGESIZE')\n"
        "sim.policy('persistent')\n"
        "factories.ones((1 << 20,), device=sim)\n"
        "before = resident()\n"
        "for _ in range(20):\n"
        "    factories.ones((1 << 20,), device=sim)\n"
        "print(resident() - before, sim.buffers().free_bytes)\n"
    )

    assert int(said[0]) < 8 << 20
    assert int(said[1]) >= 21 * (4 << 20)


# ---- S26: the persistent pool, phase 2 ----


def test_s26_phase_2_takes_nothing_from_the_driver_once_it_is_warm(sim: Device, trace) -> None:
    sim.policy("persistent-reusing")
    with scope("warm"):
        factories.ones(1000, device=sim)
        factories.ones(1000, "float64", device=sim)
    with trace() as t:
        for _ in range(COUNT):
            with scope("step"):
                factories.ones(1000, device=sim)
                factories.ones(1000, "float64", device=sim)

    assert t.count("ALLOC") == t.count("FREE") == t.count("POOL_HIT") == 2 * COUNT
    assert t.count("POOL_MISS") == t.count("DEVICE_ALLOC") == 0


def test_s26_two_live_tensors_never_have_one_buffer_and_the_last_freed_comes_first(
    sim: Device,
) -> None:
    sim.policy("persistent-reusing")
    tensors = [factories.full(1000, float(i), device=sim) for i in range(8)]
    addresses = [tensor._address() for tensor in tensors]
    values = [float(np.asarray(tensor)[999]) for tensor in tensors]
    while tensors:
        tensors.pop()
    again = [factories.empty(1000, device=sim) for _ in range(8)]

    assert len(set(addresses)) == 8
    assert values == [float(i) for i in range(8)]
    assert [tensor._address() for tensor in again] == addresses


# ---- S27: statistics ----


@pytest.mark.parametrize("policy", ["persistent", "persistent-reusing"])
def test_s27_what_was_ever_allocated_is_active_or_free_at_every_moment(policy: str) -> None:
    said = sim_in_a_process_of_its_own(
        f"sim.policy({policy!r})\n"
        "kept, total = [], 0\n"
        "for i in range(60):\n"
        "    t = factories.zeros(64 * (i % 7 + 1), device=sim)\n"
        "    kept.append(t)\n"
        "    del kept[: i % 3]\n"
        "    b = sim.buffers()\n"
        "    assert b.total_allocated_bytes == b.active_bytes + b.free_bytes\n"
        "    assert b.total_allocated_bytes >= total\n"
        "    total = b.total_allocated_bytes\n"
        "    assert b.hit_rate == (b.hits / (b.hits + b.misses))\n"
        "    assert f'{b.free_bytes} bytes in {b.free_count}' in sim.dump()\n"
        "print(b.hits, b.misses)\n"
    )
    hits, misses = map(int, said)

    assert hits + misses == 60
    assert (hits == 0) == (policy == "persistent")


# ---- S28: preallocation ----


def test_s28_preallocation_really_reserves_and_only_once() -> None:
    said = sim_in_a_process_of_its_own(
        "t = factories.zeros(1000, device=sim)\n"
        "b = sim.buffers()\n"
        "sim.preallocate(8 << 20)\n"
        "again = sim.buffers()\n"
        "print(b.reserved_bytes, again.reserved_bytes, sim.stats().total_count, b.misses)\n"
        "print(sim.stats().driver_bytes)\n",
        TLMEM_GPU_PREALLOCATE_MB="16",
    )

    assert said[:4] == [str(16 << 20), str(16 << 20), "1", "0"]
    assert 16 << 20 <= int(said[4]) <= (16 << 20) + 2 * PAGE


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="resident memory is read there")
def test_s28_what_is_reserved_is_resident_and_comes_back_whole() -> None:
    said = sim_in_a_process_of_its_own(
        "import os\n"
        "def resident():\n"
        "    return int(open('/proc/self/statm').read().split()[1]) * os.sysconf('SC_PAGESIZE')\n"
        "before = resident()\n"
        "sim.preallocate(32 << 20)\n"
        "print(resident() - before)\n"
        "free = sim.buffers().free_bytes\n"
        "kept = [factories.zeros(1000 * step, device=sim) for step in range(1, 20)]\n"
        "b = sim.buffers()\n"
        "print(b.active_bytes + b.free_bytes == b.total_allocated_bytes, b.misses)\n"
        "del kept\n"
        "print(sim.buffers().free_bytes == free)\n"
        "whole = factories.empty(7 << 20, device=sim)\n"
        "print(sim.buffers().misses)\n"
    )

    assert int(said[0]) >= 31 << 20
    assert said[1:] == ["True", "0", "True", "0"]


# ---- S51: what bookkeeping takes ----


@pytest.mark.parametrize(
    ("what", "number", "most"),
    [("a scope", 0, 320), ("a record of a tensor in a scope", 2, 16), ("a key of a pool", 3, 100)],
)
def test_s51_bookkeeping_takes_few_bytes(what: str, number: int, most: int) -> None:
    size = lib.tlm_bench_sizes(number)

    assert 0 < size <= most, what


def test_s51_a_scope_of_many_tensors_takes_about_a_record_for_each() -> None:
    count = 100_000
    said = sim_in_a_process_of_its_own(
        "from tlmem._native import ffi, lib\n"
        "def own():\n"
        "    found = ffi.new('tlm_recording_statistics *')\n"
        "    lib.tlm_recording_stats(found)\n"
        "    return found.own_bytes\n"
        "import tlmem, tempfile, os\n"
        "with tempfile.TemporaryDirectory() as place:\n"
        "  with tlmem.Recorder(os.path.join(place, 'x.tlm'), stack_depth=0, rss_interval=0):\n"
        f"    things = [tlmem.empty(0) for _ in range({count})]\n"
        "    with tlmem.scope() as s:\n"
        "        before = own()\n"
        "        for thing in things: s.register(thing)\n"
        "        after = own()\n"
        f"print((after - before) / {count})\n"
    )

    assert 0 < float(said[0]) <= 32
