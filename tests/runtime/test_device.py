"""Devices: what they hand out, keep and refuse, as a program sees it.

The contract that every device keeps is proven in C (``tests/native/device_contract.h``).
"""

import gc
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from tlmem.recorder import Recorder
from tlmem.recording.reader import read
from tlmem.runtime.device import (
    BufferStats,
    Device,
    LimitDevice,
    device,
    devices,
    limit_device,
)
from tlmem.runtime.errors import DeviceOutOfMemory, NoSuchDevice, SizeOverflow, StillHeld
from tlmem.runtime.ownership.scope import scope
from tlmem.runtime.tensors import factories

MB = 1 << 20
USABLE = [each.name for each in devices() if each.available]


@pytest.fixture(params=USABLE)
def usable(request: pytest.FixtureRequest) -> Iterator[Device]:
    """Each device that can be used here, with its first policy restored afterwards."""
    found = device(request.param)
    yield found
    if found.name == "cpu":
        found.policy("bounded")
        found.trim()
    else:
        found.policy("direct")


def alone(program: str, **environment: str) -> str:
    """What a program prints that runs in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_each_device_says_whether_it_can_be_used_and_why_not() -> None:
    found = devices()

    assert [(each.name, each.number) for each in found] == [
        ("cpu", 16),
        ("metal", 17),
        ("sim-metal", 18),
    ]
    assert all(each.available == (each.reason == "") for each in found)
    assert device("cpu").available and device("sim-metal").available
    if sys.platform != "darwin":
        assert "macOS" in device("metal").reason


def test_a_device_is_found_by_name_number_or_itself() -> None:
    assert device("sim-metal") == device(18) == device(device("sim-metal")) != device("cpu")
    with pytest.raises(NoSuchDevice, match="no device 'gpu'; there are 'cpu', 'metal'"):
        device("gpu")


@pytest.mark.skipif(device("metal").available, reason="this machine has Metal")
def test_a_device_that_is_missing_is_refused_with_its_reason() -> None:
    metal = device("metal")

    with pytest.raises(NoSuchDevice, match="cannot limit device 'metal': Metal is part of macOS"):
        limit_device("metal")
    with pytest.raises(NoSuchDevice, match="Metal is part of macOS"):
        metal.policy("direct")
    with pytest.raises(NoSuchDevice, match="Metal is part of macOS"):
        metal.preallocate(100)
    with pytest.raises(NoSuchDevice, match="Metal is part of macOS"):
        factories.zeros(3, device="metal")


def test_a_tensor_has_its_memory_from_the_device_it_names(usable: Device, trace) -> None:
    usable.policy("direct")
    before = usable.stats()
    with trace() as t:
        a = factories.ones((10, 10), device=usable)
        t.name(a=a)
        during = usable.stats()
        assert a.device == usable.name and a.tolist() == [[1.0] * 10] * 10
        del a

    assert during.current_count == before.current_count + 1
    assert during.current_bytes >= before.current_bytes + 400
    assert during.driver_bytes >= during.current_bytes
    after = usable.stats()
    assert (after.current_count, after.current_bytes) == (
        before.current_count,
        before.current_bytes,
    )
    assert t.rows("ALLOC", "FREE") == [("ALLOC", "a", 400, 1), ("FREE", "a", 0, 0)]


def test_a_limit_refuses_what_is_beyond_it_and_leaves_everything_as_it_was() -> None:
    with limit_device("cpu", limit_bytes=1000) as small:
        a = factories.zeros(200, device=small)
        before = small.stats()
        with pytest.raises(DeviceOutOfMemory) as caught:
            factories.zeros(51, device=small)
        assert caught.value.requested_bytes == 204 and caught.value.device == "limit(cpu)"
        assert "limit(cpu)" in str(caught.value) and "204" in str(caught.value)
        after = small.stats()
        assert after.current_bytes == before.current_bytes == 800 and after.failed_count == 1
        b = factories.zeros(50, device=small)
        assert small.stats().current_bytes == 1000
        del a, b, caught
        assert small.stats().current_bytes == 0 and small.stats().peak_bytes == 1000


@pytest.mark.parametrize("inner", USABLE)
def test_the_nth_request_fails_and_the_others_work(inner: str) -> None:
    with limit_device(inner, fail_nth=3) as failing:
        outcomes = []
        for _ in range(8):
            try:
                factories.zeros(10, device=failing)
                outcomes.append("ok")
            except DeviceOutOfMemory:
                outcomes.append("failed")
            if len(outcomes) == 4:
                failing.fail_nth(2)

        assert outcomes == ["ok", "ok", "failed", "ok", "ok", "failed", "ok", "ok"]


def test_a_failure_inside_a_scope_leaves_the_scope_whole() -> None:
    with limit_device("cpu") as failing:
        for nth in (1, 2, 3):
            failing.fail_nth(nth)
            with scope("s") as s:
                made = []
                with pytest.raises(DeviceOutOfMemory):
                    made.extend(factories.zeros(4, device=failing) for _ in range(3))
                assert s.count == nth - 1
            assert failing.stats().current_count == 0


def test_an_adaptor_cannot_be_closed_while_its_memory_is_held() -> None:
    adaptor = limit_device("cpu", limit_bytes=100)
    a = factories.zeros(5, device=adaptor)
    with pytest.raises(StillHeld, match="20 bytes in 1 objects are handed out; free them first"):
        adaptor.close()
    assert adaptor.available
    del a
    outer = limit_device(adaptor)
    assert outer.name == "limit(limit(cpu))"
    with pytest.raises(StillHeld, match="another adaptor stands before it"):
        adaptor.close()
    outer.close()
    adaptor.close()
    adaptor.close()
    assert not adaptor.available and adaptor.reason == "it is closed"
    for use in (adaptor.stats, adaptor.buffers, adaptor.trim, lambda: adaptor.fail_nth(1)):
        with pytest.raises(NoSuchDevice, match="is closed"):
            use()


def test_an_error_is_not_covered_up_by_an_adaptor_that_cannot_be_closed() -> None:
    kept = []
    with pytest.raises(KeyError, match="the error"), limit_device("cpu") as adaptor:
        kept.append(factories.zeros(5, device=adaptor))
        raise KeyError("the error")
    kept.clear()
    adaptor.close()


def test_an_adaptor_that_nobody_closed_ends_with_its_last_name() -> None:
    numbers = set()
    for _ in range(300):
        numbers.add(limit_device("cpu").number)
    gc.collect()

    assert len(numbers) <= 224 and min(numbers) >= 32
    limit_device("cpu").close()


def test_arguments_that_mean_nothing_are_refused() -> None:
    for wrong in (0, -1, 2**64):
        with pytest.raises(ValueError, match="limit must be"):
            limit_device("cpu", limit_bytes=wrong)
        with pytest.raises(ValueError, match="fail_nth must be"):
            limit_device("cpu", fail_nth=wrong)
    with pytest.raises(TypeError, match="whole number, not 1.5"):
        limit_device("cpu", limit_bytes=1.5)  # type: ignore[arg-type]
    cpu = device("cpu")
    with pytest.raises(ValueError, match="no policy 'lru'; there are 'direct', 'bounded'"):
        cpu.policy("lru")
    with pytest.raises(ValueError, match="'direct' has no budget"):
        cpu.policy("direct", budget_bytes=5)
    with pytest.raises(ValueError):
        cpu.preallocate(0)
    with pytest.raises(SizeOverflow):
        cpu.preallocate(2**60)


def test_a_bounded_device_reuses_what_was_freed(usable: Device) -> None:
    usable.policy("bounded", budget_bytes=MB)
    factories.zeros(1000, device=usable)
    before = usable.buffers()
    for _ in range(50):
        factories.zeros(1000, device=usable)
    after = usable.buffers()

    assert after.hits == before.hits + 50 and after.misses == before.misses
    assert after.total_allocated_bytes == before.total_allocated_bytes
    assert usable.trim() == before.free_bytes >= 4000
    assert usable.buffers().free_bytes == usable.trim() == 0


def test_a_persistent_pool_in_phase_1_never_hits_and_keeps_everything(usable: Device) -> None:
    usable.policy("direct")
    usable.policy("persistent")
    before = usable.buffers()
    for _ in range(10):
        factories.ones(1000, device=usable)
    after = usable.buffers()

    assert after.hits - before.hits == 0 and after.misses - before.misses == 10
    assert after.free_count - before.free_count == 10
    assert balance(after) == balance(before)
    assert usable.trim() == 0


def test_a_persistent_pool_in_phase_2_takes_nothing_in_a_steady_state(usable: Device) -> None:
    usable.policy("direct")
    usable.policy("persistent-reusing")

    def step() -> None:
        with scope("step"):
            for size in (100, 1000, 5000):
                factories.zeros(size, device=usable)

    step()
    before = usable.buffers()
    for _ in range(20):
        step()
    after = usable.buffers()

    assert after.misses == before.misses and after.hits == before.hits + 60
    assert after.total_allocated_bytes == before.total_allocated_bytes
    assert balance(after) == balance(before)


def balance(found: BufferStats) -> int:
    """0, but for what was given back to the driver under an earlier policy."""
    return found.total_allocated_bytes - found.active_bytes - found.free_bytes


def test_the_five_statistics_agree_and_are_written_out(usable: Device) -> None:
    usable.policy("bounded", budget_bytes=MB)
    kept = factories.zeros(500, device=usable)
    factories.zeros(500, device=usable)
    found, text = usable.buffers(), usable.dump()

    assert f"taken from the driver: {found.total_allocated_bytes} bytes" in text
    assert f"free: {found.free_bytes} bytes in {found.free_count}" in text
    assert found.hit_rate == found.hits / (found.hits + found.misses)
    assert f"hits: {found.hits}; misses: {found.misses}" in text
    assert found.active_count >= 1
    del kept


def test_preallocated_memory_is_resident_and_serves_without_the_driver() -> None:
    said = alone(
        """
        import os
        from tlmem.runtime.tensors import factories
        from tlmem.runtime.device import device
        def resident():
            with open("/proc/self/statm") as f:
                return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")
        sim = device("sim-metal")
        empty = sim.stats().driver_bytes
        before = resident()
        first = factories.zeros(10, device=sim)
        after = resident()
        handed_out = sim.stats().total_count
        for _ in range(100):
            factories.zeros(1000, device=sim)
        found = sim.buffers()
        print(empty, found.reserved_bytes, found.misses, found.hits, handed_out)
        print(after - before if os.path.exists("/proc/self/statm") else 64 << 20)
        print(sim.stats().total_count - handed_out)
        """,
        TLMEM_GPU_PREALLOCATE_MB="64",
    ).split()

    assert said[:5] == ["0", str(64 * MB), "0", "101", "1"]
    assert 60 * MB < int(said[5]) < 80 * MB
    assert said[6] == "0"


def test_a_number_of_megabytes_that_is_none_is_ignored_and_said() -> None:
    said = alone(
        """
        from tlmem.runtime.tensors import factories
        from tlmem.runtime.device import device
        factories.zeros(10, device="sim-metal")
        print(device("sim-metal").buffers().reserved_bytes, device("sim-metal").dump())
        """,
        TLMEM_GPU_PREALLOCATE_MB="some",
    )

    assert said.startswith("0 ")
    assert "TLMEM_GPU_PREALLOCATE_MB is ignored: not a whole number" in said


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="resident memory is read there")
def test_a_driver_that_keeps_what_is_freed_grows_and_the_cpu_does_not() -> None:
    """B13, B19, B20: growth without a leak of tensors, and the meter that says so can fall."""
    program = """
        import os, sys
        from tlmem.runtime.tensors import factories
        from tlmem.runtime.device import device
        def resident():
            with open("/proc/self/statm") as f:
                return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")
        found = device(sys.argv[1])
        found.policy("direct")
        factories.ones(1000, device=found)
        before, driver = resident(), found.stats().driver_bytes
        for _ in range(60):
            factories.ones(MB // 4, device=found)
        held = factories.ones(20 * MB // 4, device=found)
        high = resident()
        del held
        after = resident()
        print(found.stats().current_bytes, found.stats().driver_bytes - driver)
        print(after - before, high - after)
    """
    figures = {}
    for name in ("cpu", "sim-metal"):
        run = "import sys; sys.argv.append(" + repr(name) + "); MB = 1 << 20"
        figures[name] = [int(n) for n in alone(run + textwrap.dedent(program)).split()]
    leaked, driver, grown, fell = figures["cpu"]
    assert leaked == 0 and driver == 0 and grown < 20 * MB and fell > 10 * MB
    leaked, driver, grown, fell = figures["sim-metal"]
    assert leaked == 0 and 80 * MB <= driver < 84 * MB
    assert 75 * MB < grown < 90 * MB and fell < MB


def test_a_recording_says_what_drivers_hold_and_when_they_were_asked(tmp_path: Path) -> None:
    sim = device("sim-metal")
    sim.policy("direct")
    factories.ones(1, device=sim)
    with Recorder(tmp_path / "driver.tlm"):
        for _ in range(8):
            factories.ones(MB // 4, device=sim)
    recording = read(tmp_path / "driver.tlm")

    held = recording.samples["driver"].dropna()
    assert 8 * MB <= held.iloc[-1] - held.iloc[0] < 9 * MB
    row = recording.devices.set_index("name").loc["sim-metal"]
    assert (row["alloc_count"], row["free_count"], row["live_bytes"]) == (8, 8, 0)


def test_a_device_says_what_it_is() -> None:
    assert repr(device("cpu")) == "<Device 'cpu' (number 16)>"
    assert str(device("sim-metal")) == "sim-metal"
    with limit_device("cpu") as adaptor:
        assert isinstance(adaptor, LimitDevice) and str(adaptor) == "limit(cpu)"
        assert len({adaptor, device("cpu"), device("cpu")}) == 2
