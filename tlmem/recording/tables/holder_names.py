"""Names of holders in words: ``scope 'epoch' #3``, ``field weight of Layer``, ``tape 'exp' #7``.

Covers: texts for holders, from the scopes, structs and labels that a recording knows.
Does not cover: who held what (``ledger``).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tlmem.events import (
    FIELD_NUMBER_BITS,
    FIRST_TAPE_OP,
    HOLDER_NUMBER_BITS,
    TAPE_OP_BITS,
    HolderKind,
    Kind,
)
from tlmem.recording.format.timeline import Timeline

NUMBER_MASK = np.uint64((1 << HOLDER_NUMBER_BITS) - 1)
SEQUENCE_MASK = np.uint64((1 << TAPE_OP_BITS) - 1)
_FIELD_MASK = np.uint64((1 << FIELD_NUMBER_BITS) - 1)
_ALWAYS_THE_SAME = {
    HolderKind.NONE: "nobody known",
    HolderKind.FLOATING: "nobody",
    HolderKind.HANDLE: "handle",
    HolderKind.VIEW: "view",
    HolderKind.EXPORT: "export",
}
_POOL_NOTE, _OP_NOTE = "pool.", "op."
_OF_THE_TAPE_ITSELF = ("tape node", "gradient under way", "gradient", "value computed again")
_OF_A_SCOPE = {HolderKind.SCOPE: "scope", HolderKind.FRAME: "frame"}
_LARGEST_LABEL = 1 << 32
_SHORT_LABEL = 60
_TEXT_OF_LABELS = 60_000_000


class HolderNames:
    """Knows the texts of holders of one recording."""

    def __init__(self, timeline: Timeline, labels: dict[int, str], notes: dict[str, str]) -> None:
        self.labels = labels
        self._most = longest_label(len(timeline))
        self._layouts: dict[int, tuple[str, list[str]]] = {}
        self.notes = notes
        entered = np.flatnonzero(timeline.kind == Kind.SCOPE_ENTER)
        entered = entered[np.argsort(timeline.object[entered], kind="stable")]
        self._scope, self._scope_label = timeline.object[entered], timeline.arg[entered]
        made = np.flatnonzero(timeline.kind == Kind.HOLDERS)
        first = timeline.arg[made] & _FIELD_MASK
        order = np.argsort(first, kind="stable")
        self._first = first[order]
        self._layout = (timeline.arg[made] >> np.uint64(FIELD_NUMBER_BITS))[order]
        self._fields = timeline.count[made][order]

    def texts(self, holders: np.ndarray, numbered: bool = True) -> np.ndarray:
        """A text for each holder.

        Args:
            holders: kind << 56 | number.
            numbered: two scopes of one label differ by their numbers; else by nothing.
        """
        kinds, numbers = holders >> np.uint64(HOLDER_NUMBER_BITS), holders & NUMBER_MASK
        found = np.full(len(holders), "", object)
        for kind in np.unique(kinds).tolist():
            chosen = kinds == kind
            found[chosen] = self._of_kind(kind, numbers[chosen], numbered)
        return found

    def text(self, holder: int) -> str:
        """The text of one holder."""
        return str(self.texts(np.array([holder], np.uint64))[0])

    def _of_kind(self, kind: int, numbers: np.ndarray, numbered: bool) -> np.ndarray | str:
        if kind in _ALWAYS_THE_SAME:
            return _ALWAYS_THE_SAME[HolderKind(kind)]
        if kind == HolderKind.TAPE:
            return self._of_a_tape(numbers, numbered)
        if kind == HolderKind.POOL:
            return each(numbers, self.pool)
        if kind in _OF_A_SCOPE:
            return self._scopes(_OF_A_SCOPE[HolderKind(kind)], numbers, numbered)
        if kind == HolderKind.FIELD:
            return self._fields_of(numbers)
        if kind == HolderKind.REGISTRY:
            return each(numbers, lambda number: f"parameter {self._quoted(number)}")
        if kind == HolderKind.FOREIGN:
            return each(numbers, self._foreign)
        return f"holder of kind {kind}"

    def pool(self, number: int) -> str:
        """What a pool is called."""
        name = self.notes.get(f"{_POOL_NOTE}{number}")
        return f"pool '{name[: self._most]}'" if name else f"pool #{number}"

    def op(self, number: int) -> str:
        """What an op of the tape is called; of a number that no op has, what the tape holds so."""
        if number < len(_OF_THE_TAPE_ITSELF):
            return _OF_THE_TAPE_ITSELF[number]
        return self.notes.get(f"{_OP_NOTE}{number}", "")[: self._most] or f"op {number}"

    def _of_a_tape(self, numbers: np.ndarray, numbered: bool) -> np.ndarray:
        def text_of(op: int) -> str:
            return self.op(op) if op < FIRST_TAPE_OP else f"tape '{self.op(op)}'"

        texts = each(numbers >> np.uint64(TAPE_OP_BITS), text_of)
        return texts + each(numbers & SEQUENCE_MASK, " #{}".format) if numbered else texts

    def _quoted(self, label: int) -> str:
        return f"'{self.labels[label][: self._most]}'" if label in self.labels else f"#{label}"

    def _foreign(self, number: int) -> str:
        if number in self.labels:
            return self.labels[number][: self._most]
        return f"label #{number}" if number < _LARGEST_LABEL else f"owner at {number:#x}"

    def _scopes(self, word: str, numbers: np.ndarray, numbered: bool) -> np.ndarray:
        label = np.zeros(len(numbers), np.uint64)
        if len(self._scope):
            at = np.searchsorted(self._scope, numbers).clip(max=len(self._scope) - 1)
            label = np.where(self._scope[at] == numbers, self._scope_label[at], np.uint64(0))
        labelled = each(
            label, lambda number: f"{word} '{self.labels.get(number, '')[: self._most]}'"
        )
        labelled[label == 0] = word
        return labelled + each(numbers, " #{}".format) if numbered else labelled

    def _fields_of(self, numbers: np.ndarray) -> np.ndarray:
        if not len(self._first):
            return np.full(len(numbers), "field of a struct", object)
        at = np.searchsorted(self._first, numbers, side="right") - 1
        inside = numbers - self._first[at.clip(0)]
        known = (at >= 0) & (inside < self._fields[at.clip(0)])
        layout = np.where(known, self._layout[at.clip(0)], np.uint64(0))
        # The last fields of a very large struct share a text.
        inside = np.where(known, np.minimum(inside, np.uint64(65535)), np.uint64(0))
        texts = each(layout << np.uint64(16) | inside, self._field)
        texts[~known] = "field of a struct"
        return texts

    def _field(self, layout_and_field: int) -> str:
        layout, field = layout_and_field >> 16, layout_and_field & 65535
        if layout not in self._layouts:
            name, _, inner = self.labels.get(layout, "").partition("{")
            self._layouts[layout] = name, inner.removesuffix("}").split(",") if inner else []
        name, named = self._layouts[layout]
        called = named[field] if field < len(named) and named[field] else str(field)
        return f"field {called[: self._most]} of {name[: self._most] or 'a struct'}"


def longest_label(events: int) -> int:
    """So many characters of a label are shown where each event could show it once more."""
    return max(_SHORT_LABEL, _TEXT_OF_LABELS // max(events, 1))


def each(numbers: np.ndarray, text_of: Callable[[int], str]) -> np.ndarray:
    """A text for each number, made once for each different one."""
    distinct, which = np.unique(numbers, return_inverse=True)
    texts = np.empty(len(distinct), object)
    texts[:] = [text_of(number) for number in distinct.tolist()]
    return texts[which.reshape(-1)]
