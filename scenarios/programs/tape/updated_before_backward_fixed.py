"""A weight is updated when the backward pass that reads it is over."""

import tlmem

OUTCOME = "stable"


def main() -> None:
    weight = tlmem.randn((16, 16), seed=1, requires_grad=True)
    batch = tlmem.randn((8, 16), seed=2, requires_grad=True)
    for step in tlmem.steps(24_000):
        tlmem.sum(batch @ weight).backward()
        if step % 1000 == 0:
            with tlmem.no_grad():
                tlmem.multiply(weight, 0.999, out=weight)
    print(weight.shape)


if __name__ == "__main__":
    main()
