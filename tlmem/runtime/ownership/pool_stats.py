"""What a pool says of itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class PoolStats(Mapping[str, Any]):
    """Sizes and counters of a pool at one moment; attributes and items are the same.

    Attributes:
        size: how many tensors are kept.
        hits: how often ``acquire`` gave one.
        misses: how often it gave none.
        puts: how many releases were kept.
        drops: how many were freed because their key was full.
        by_key: key -> how many are kept, in the order of their first release.
        hit_rate: ``hits / (hits + misses)``, 0 before the first ``acquire``.
    """

    size: int
    hits: int
    misses: int
    puts: int
    drops: int
    by_key: dict[str, int] = field(default_factory=dict)

    @property
    def hit_rate(self) -> float:
        """Share of ``acquire`` that found something."""
        asked = self.hits + self.misses
        return self.hits / asked if asked else 0.0

    def __getitem__(self, name: str) -> Any:
        if name in _NAMES:
            return getattr(self, name)
        raise KeyError(f"no statistic {name!r}; there are {', '.join(_NAMES)}")

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMES)

    def __len__(self) -> int:
        return len(_NAMES)


_NAMES = ("size", "hits", "misses", "hit_rate", "by_key", "puts", "drops")
