"""The five ways out of a block, and what every recording must add up to whichever was taken.

``leave(manager, work)`` enters the block of a context manager, does the work in it exactly once and
leaves it by that way.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
from runtime.trace import Tracer

from tlmem.recording.reader import Recording, read

Block = AbstractContextManager[Any]
Work = Callable[[], object]
Leave = Callable[[Block, Work], None]


class Left(Exception):
    """Leaves a block."""


def normally(block: Block, work: Work) -> None:
    with block:
        work()


def by_return(block: Block, work: Work) -> None:
    with block:
        work()
        return


def by_break(block: Block, work: Work) -> None:
    for _ in range(2):
        with block:
            work()
            break


def by_continue(block: Block, work: Work) -> None:
    for _ in range(1):
        with block:
            work()
            continue


def by_exception(block: Block, work: Work) -> None:
    with pytest.raises(Left), block:
        work()
        raise Left


WAYS: list[Leave] = [normally, by_return, by_break, by_continue, by_exception]
each_way_out = pytest.mark.parametrize("leave", WAYS, ids=lambda way: way.__name__)


def recorded(tracer: Tracer) -> Recording:
    """The last trace as a recording; its counts and holders must follow from its events.

    That turns the detector of B1, B2, B12 and B20 on the runtime: every count in an event is that
    of the holders whom the events before it left, and nobody gives up what he does not hold.
    """
    found = read(tracer.folder / f"trace-{tracer.made}.tlm")
    assert found.problems == []
    return found
