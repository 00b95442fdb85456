"""A frame is left by hand while that of a function it called is still entered."""

import tlmem

OUTCOME = "stable"
COUNT = 32


def begin() -> float:
    tlmem.frame(1, "inner").__enter__()
    return float(tlmem.get_buffer(0, 4096).nbytes)


def main() -> None:
    total, refused = 0.0, 0
    for step in range(16_000):
        outer = tlmem.frame(1, "outer")
        outer.__enter__()
        total += float(tlmem.full((16, 64), step).sum().item())
        if step % 500 == 0:
            total += begin()
        try:
            outer.__exit__(None, None, None)  # unbalanced-frame here
        except tlmem.UnbalancedScope:
            refused += 1
    print(f"{total:.3e}, {refused} refused")


if __name__ == "__main__":
    main()
