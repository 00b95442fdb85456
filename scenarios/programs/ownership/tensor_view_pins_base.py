"""The last row of each state is kept, as a view: the view keeps the state that it looks into."""

import tlmem

OUTCOME = "leak"
HELD_BY = "view"
CLASS = "view-pins-base"
COUNT = 2000
BYTES = 65_536_000


def last_row(step: int) -> tlmem.Tensor:
    with tlmem.scope("state"):
        state = tlmem.full((64, 64), step)  # leaks here
        return tlmem.escape(state[63])


def main() -> None:
    rows = [last_row(step) for step in range(2000)]
    print(f"kept {len(rows)} rows, {sum(row.nbytes for row in rows)} bytes of them are used")


if __name__ == "__main__":
    main()
