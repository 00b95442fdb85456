"""The early return of skipped-frame-exit in a framed function, whose frame ends however it ends."""

from tlmem.scenarios.harness.switch import long_enough

import tlmem

OUTCOME = "stable"


@tlmem.framed(1)
def scaled_sum(values: list[float]) -> float:
    buffer = tlmem.get_buffer(0, 4096)
    if not values:
        return 0.0
    scaled = buffer.tensor(len(values))
    tlmem.multiply(tlmem.tensor(values), 0.5, out=scaled)
    return float(scaled.sum().item())


def main() -> None:
    total = 0.0
    for step in long_enough(9_000):
        total += scaled_sum([1.0] * (step % 4))
    print(f"{total}, {tlmem.scope_depth()} scopes entered")


if __name__ == "__main__":
    main()
