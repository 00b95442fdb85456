"""The policies: ways to own the same objects, each a row of one table.

``default`` leaves everything to the handles, as plain Python does, and plans memory beneath them.
The others are the strategies of the systems that tlmem grew out of: they enter a scope or frame in
each call and say every acquire, release and hand-off, so that recordings of one program under each
can be compared.

Covers: what a policy asks for. Does not cover: where in a function that is (``passes.ownership``),
how it is done (``backend.activation``). See also: docs/policies.md.
"""

from __future__ import annotations

from dataclasses import dataclass

UNREGISTER, PROMOTE = "unregister", "promote"
OVER_RETAINED = "struct Tensor"
"""The holder that a policy with ``over_retains`` acquires for."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What a policy asks for.

    Attributes:
        name: as the program gives it to ``compile``.
        is_explicit: ownership is said in a scope of each call; else it is the handles' alone.
        has_slots: results whose size is known are computed into slots of a frame (S11, S12).
        moves: the last use hands the count over instead of acquiring (S21).
        destinations: the last operation computes into the caller's ``out`` (S20).
        over_retains: each read of a tensor acquires and nothing releases: a bug on purpose (S23).
        ends_at_last_use: the function's own count goes behind the last use (S31).
        hand_off: how a result leaves: ``unregister`` (S18) or ``promote`` (S30).
    """

    name: str
    is_explicit: bool = True
    has_slots: bool = False
    moves: bool = False
    destinations: bool = False
    over_retains: bool = False
    ends_at_last_use: bool = False
    hand_off: str = UNREGISTER


POLICIES: dict[str, Policy] = {
    each.name: each
    for each in (
        Policy("default", is_explicit=False),
        Policy("v1"),
        Policy("v2", has_slots=True),
        Policy("v3", has_slots=True, moves=True, destinations=True),
        Policy("v3-overretain", moves=True, destinations=True, over_retains=True),
        Policy(
            "v5",
            has_slots=True,
            moves=True,
            destinations=True,
            ends_at_last_use=True,
            hand_off=PROMOTE,
        ),
    )
}
"""All policies by name."""

SOUND = tuple(name for name, each in POLICIES.items() if not each.over_retains)
"""Those under which nothing is left when a function has ended."""
