"""An early return skips function_exit: each such call leaves its frame, and its slots, entered."""

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
    scaled = buffer.tensor(len(values))
    tlmem.multiply(tlmem.tensor(values), 0.5, out=scaled)
    result = float(scaled.sum().item())
    tlmem.function_exit()
    return result


def main() -> None:
    total = 0.0
    for step in range(2000):
        total += scaled_sum([1.0] * (step % 4))
    print(f"{total}, {tlmem.scope_depth()} scopes entered")


if __name__ == "__main__":
    main()
