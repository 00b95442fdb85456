"""The best result is remembered by name only; its scope frees it, and it is read afterwards."""

import tlmem

OUTCOME = "stable"
COUNT = 48


def main() -> None:
    best: tlmem.Tensor | None = None
    total, refused = 0.0, 0
    for step in range(48_000):
        with tlmem.scope("step"):
            loss = tlmem.full((16, 64), step).sum()
            if step % 1000 == 0:
                best = loss
        if best is not None and step % 1000 == 50:
            try:
                total += best.item()  # use-after-free here
            except tlmem.UseAfterFree:
                refused += 1
    print(f"{total}, {refused} refused")


if __name__ == "__main__":
    main()
