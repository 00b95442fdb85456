"""The best result is remembered as a number, which no scope frees."""

import tlmem

OUTCOME = "stable"


def main() -> None:
    best, total = 0.0, 0.0
    for step in range(16_000):
        with tlmem.scope("step"):
            loss = tlmem.full((16, 64), step).sum()
            if step % 1000 == 0:
                best = float(loss.item())
        if step % 1000 == 50:
            total += best
    print(total)


if __name__ == "__main__":
    main()
