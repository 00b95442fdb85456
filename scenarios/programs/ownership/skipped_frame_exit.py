"""An early return skips function_exit: each such call leaves its frame, and its slots, entered.

Fixed: The early return of skipped-frame-exit in a framed function, whose frame ends however it
ends.
"""

from tlmem.scenarios.harness.switch import FIXED, repeat

import tlmem

OUTCOME = "leak"
HELD_BY = "frame 'scaled_sum'"
CLASS = "scope-not-left"
COUNT = 500
BYTES = 2_048_000


def scaled_sum(values: list[float]) -> float:
    tlmem.function_enter(1, "scaled_sum")
    buffer = tlmem.get_buffer(0, 4096)  # leaks here
    if not values:
        return 0.0
    result = half_of(values, buffer)
    tlmem.function_exit()
    return result


@tlmem.framed(1)
def scaled_sum_fixed(values: list[float]) -> float:
    buffer = tlmem.get_buffer(0, 4096)
    if not values:
        return 0.0
    return half_of(values, buffer)


def half_of(values: list[float], buffer: tlmem.SlotBuffer) -> float:
    scaled = buffer.tensor(len(values))
    tlmem.multiply(tlmem.tensor(values), 0.5, out=scaled)
    return float(scaled.sum().item())


def main() -> None:
    total = 0.0
    function = scaled_sum_fixed if FIXED else scaled_sum
    for step in repeat(2000, fixed=4_000):
        total += function([1.0] * (step % 4))
    print(f"{total}, {tlmem.scope_depth()} scopes entered")


if __name__ == "__main__":
    main()
