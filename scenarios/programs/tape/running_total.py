"""The losses of all steps are added up as tensors: each step hangs on all those before it."""

import tlmem

OUTCOME = "leak"
CLASS = "tape-growth"


def main() -> None:
    weight = tlmem.ones(4, requires_grad=True)
    total: tlmem.Tensor | float = 0.0
    for _ in tlmem.steps(30_000):
        loss = (weight * weight).sum()
        loss.backward()
        total = total + loss
    print(f"{float(total.item()):.3e}" if isinstance(total, tlmem.Tensor) else total)


if __name__ == "__main__":
    main()
