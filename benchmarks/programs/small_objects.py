"""Instances, numbers in dictionaries, and JSON: as many small objects as Python makes in a time."""

import json
from collections.abc import Callable


class Point:
    """Two numbers in a dict of its own."""

    def __init__(self, x: int, y: int) -> None:
        self.x = x
        self.y = y


def make_points(count: int) -> int:
    """Makes and drops instances."""
    total = 0
    for i in range(count):
        point = Point(i, i + 1)
        total += Point(point.y, point.x).x
    return total


def fill_numbers(rounds: int) -> int:
    """Makes dictionaries of numbers that are all objects."""
    total = 0
    for r in range(rounds):
        squares: dict[int, int] = {}
        for i in range(2000):
            squares[i * 1000 + r] = i * i + 1000
        total += sum(squares.values())
    return total


def read_documents(rounds: int) -> int:
    """Writes JSON and reads it."""
    rows = [{f"k{i}": i * 1000, "text": str(i) * 3, "half": i * 0.5} for i in range(100)]
    return sum(len(json.loads(json.dumps({"rows": rows}))) for _ in range(rounds))


def prepare() -> dict[str, Callable[[int], object]]:
    """A unit is a few milliseconds of each."""

    def work(units: int) -> None:
        for _ in range(units):
            make_points(2_000)
            fill_numbers(2)
            read_documents(4)

    return {"small_objects": work}
