"""Cycles in plenty, with the garbage collector at work: they go in batches."""

import numpy as np

OUTCOME = "stable"


class Node:
    """Knows its neighbour, which knows it."""

    def __init__(self) -> None:
        self.other: Node | None = None
        self.data = np.ones(2_000)


def main() -> None:
    for _ in range(60_000):
        left, right = Node(), Node()
        left.other, right.other = right, left


if __name__ == "__main__":
    main()
