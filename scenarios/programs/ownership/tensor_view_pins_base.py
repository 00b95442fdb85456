"""The last row of each state is kept, as a view: the view keeps the state that it looks into.

Fixed: The last rows of the latest states are kept, as copies: no state outlives its scope.
"""

from collections import deque
from collections.abc import MutableSequence

from tlmem.scenarios.harness.switch import FIXED, repeat

import tlmem

OUTCOME = "leak"
HELD_BY = "view"
CLASS = "view-pins-base"
COUNT = 2000
BYTES = 65_536_000


def last_row(step: int) -> tlmem.Tensor:
    with tlmem.scope("state"):
        state = tlmem.full((64, 64), step)  # leaks here
        row = state[63]
        return tlmem.escape(row.copy() if FIXED else row)


def main() -> None:
    rows: MutableSequence[tlmem.Tensor] = deque(maxlen=50) if FIXED else []
    for step in repeat(2000, fixed=4_000):
        rows.append(last_row(step))
    print(f"kept {len(rows)} rows, {sum(row.nbytes for row in rows)} bytes of them are used")


if __name__ == "__main__":
    main()
