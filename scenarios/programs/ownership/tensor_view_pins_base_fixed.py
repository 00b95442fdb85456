"""The last rows of the latest states are kept, as copies: no state outlives its scope."""

from collections import deque

import tlmem

OUTCOME = "stable"


def last_row(step: int) -> tlmem.Tensor:
    with tlmem.scope("state"):
        state = tlmem.full((64, 64), step)
        return tlmem.escape(state[63].copy())


def main() -> None:
    rows: deque[tlmem.Tensor] = deque(maxlen=50)
    for step in range(16_000):
        rows.append(last_row(step))
    print(f"kept {len(rows)} rows of {rows[-1].nbytes} bytes")


if __name__ == "__main__":
    main()
