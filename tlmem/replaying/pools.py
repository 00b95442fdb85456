"""The same trace through tlmem's own buffers: the code of the runtime itself, not a model of it.

Covers: the policies of ``tlmem.Device``: direct, bounded, persistent, persistent-reusing. Does not
cover: arenas and frames, whose memory ends with scopes that a recording of arrays does not have.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tlmem import _native
from tlmem.errors import TlmemError
from tlmem.replaying.cuda import Contradiction, Figures, figures_of
from tlmem.replaying.settings import BadSetting
from tlmem.replaying.trace import Trace
from tlmem.units import format_bytes, parse_bytes

POLICIES = ("direct", "bounded", "persistent", "persistent-reusing")
"""In the order of ``tlm_buffers_policy``."""
DEFAULT_BUDGET = 64 << 20


class TooLarge(TlmemError):
    """This machine has not the address space that the trace needs."""

    exit_code = 2


@dataclass(frozen=True)
class PoolSettings:
    """``policy`` is one of ``POLICIES``; ``budget_bytes`` is what ``bounded`` keeps."""

    policy: str = "bounded"
    budget_bytes: int = DEFAULT_BUDGET

    @property
    def name(self) -> str:
        """What a table calls it."""
        kept = f", budget={format_bytes(self.budget_bytes)}" if self.policy == "bounded" else ""
        return f"policy={self.policy}{kept}"

    @property
    def conf(self) -> str:
        """As ``tlmem.Device.policy`` takes it."""
        return self.name

    def changed(self, pairs: list[str]) -> PoolSettings:
        """The same with ``policy=NAME`` or ``budget=SIZE`` changed.

        Raises:
            BadSetting: there is no such setting or value.
        """
        policy, budget = self.policy, self.budget_bytes
        for text in pairs:
            key, _, value = text.partition("=")
            if key == "policy" and value in POLICIES:
                policy = value
            elif key == "budget":
                try:
                    budget = parse_bytes(value)
                except ValueError as error:
                    raise BadSetting(f"budget={value} is not a size; write 64MiB.") from error
            else:
                raise BadSetting(
                    f"'{text}' is not a setting of tlmem's pools; give policy=NAME with one of "
                    f"{', '.join(POLICIES)}, or budget=SIZE."
                )
        return PoolSettings(policy, budget)


def run(trace: Trace, settings: PoolSettings, capacity_bytes: int = 0) -> Figures:
    """The figures after all events of a trace.

    Raises:
        TooLarge: the machine refuses the memory.
        MemoryError: no memory for the replay itself.
        Contradiction: the trace contradicts itself.
    """
    ffi, lib = _native.ffi, _native.lib
    figures = ffi.new("tlm_sim_figures *")
    events = np.ascontiguousarray(trace.events)
    status = lib.tlm_sim_pool(
        POLICIES.index(settings.policy),
        settings.budget_bytes,
        capacity_bytes,
        ffi.from_buffer("tlm_sim_event[]", events),
        len(events),
        trace.blocks,
        ffi.NULL,
        figures,
    )
    if status == lib.TLM_NO_MEMORY:
        raise MemoryError("no memory for the replay")
    if status == lib.TLM_OUT_OF_MEMORY and not capacity_bytes:
        raise TooLarge(
            f"this machine has no {format_bytes(int(figures.failed_bytes))} of address space more "
            "for the trace; replay it on a larger one."
        )
    if status not in (lib.TLM_OK, lib.TLM_OUT_OF_MEMORY):
        raise Contradiction("the trace cannot be replayed: it contradicts itself.")
    return figures_of(figures)


def sweep(settings: PoolSettings) -> list[PoolSettings]:
    """Every policy, those that keep a bounded amount with several budgets."""
    budgets = sorted({settings.budget_bytes, 16 << 20, 64 << 20, 256 << 20, 1 << 30})
    return [
        PoolSettings(policy, budget)
        for policy in POLICIES
        for budget in (budgets if policy == "bounded" else [settings.budget_bytes])
    ]
