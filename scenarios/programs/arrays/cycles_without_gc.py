"""Parent and child refer to each other while the garbage collector is switched off for speed.

Fixed: Cycles in plenty, with the garbage collector at work: they go in batches.
"""

import gc

import numpy as np
from tlmem.scenarios.harness.switch import FIXED, repeat

OUTCOME = "leak"
TWIN = "collected-cycles"
CLASS = "reference-cycle"
HELD_BY = (
    "a reference cycle: Node.children[] -> Node.parent -> Node through attribute 'data' of Node"
)
COUNT = 20_000
BYTES = 240_000_000


class Node:
    """A tree node with its own data."""

    def __init__(self, parent: "Node | None" = None) -> None:
        self.parent = parent
        self.children: list[Node] = []
        self.data = np.ones(1_500)  # leaks here


def tree(width: int) -> Node:
    root = Node()
    root.children = [Node(root) for _ in range(width)]
    return root


def main() -> None:
    if not FIXED:
        gc.disable()
    total = 0.0
    for _ in repeat(5000, fixed=5_000):
        total += sum(float(child.data.sum()) for child in tree(3).children)
    print(total)


if __name__ == "__main__":
    main()
