"""The losses of running-total are added up as numbers, which hang on nothing."""

import tlmem

OUTCOME = "stable"


def main() -> None:
    weight = tlmem.ones(4, requires_grad=True)
    total = 0.0
    for _ in tlmem.steps(40_000):
        loss = (weight * weight).sum()
        loss.backward()
        total += float(loss.item())
    print(f"{total:.3e}")


if __name__ == "__main__":
    main()
