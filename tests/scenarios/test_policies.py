"""``tlmem scenario run policies``: what each policy of the compiler costs, on recordings."""

from __future__ import annotations

import gc

import pytest
from tlmem.scenarios.harness import policies

from tlmem.runtime.core import ffi, lib


@pytest.fixture(autouse=True)
def few_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policies, "EPOCHS", 4)
    monkeypatch.setattr(policies, "WARM", 1)


@pytest.mark.parametrize("program", policies.PROGRAMS)
def test_moves_acquire_no_more_than_shared_ownership_and_nothing_grows(program: str) -> None:
    rows = {name: policies.measured(program, name) for name in ("default", "v1", "v3", "v5")}

    assert [row.growth_bytes for row in rows.values()] == [0] * 4
    assert rows["default"].acquires <= rows["v3"].acquires <= rows["v1"].acquires
    assert rows["v5"].acquires == rows["v3"].acquires
    assert rows["default"].events < rows["v3"].events


def test_over_retaining_acquires_much_more_and_grows_in_each_epoch() -> None:
    known = alive()
    sound, bug = (policies.measured("N-Queens", name) for name in ("v3", "v3-overretain"))
    gc.collect()
    for handle in alive() - known:
        lib.tlm_free(handle)

    assert sound.acquires < 4 * policies.EPOCHS < 40 * policies.EPOCHS < bug.acquires
    assert bug.growth_bytes > sound.growth_bytes == 0
    assert "`v3-overretain`" in list(policies.lines([bug]))[-1]


def alive() -> set[int]:
    """Handles of all objects that are alive."""
    out = ffi.new("tlm_object[]", 1 << 16)
    return {int(each) for each in out[0 : lib.tlm_objects_alive(out, 1 << 16)]}
