"""One scope around the whole training: the temporary of each expression lives until its end."""

import tlmem

OUTCOME = "leak"
HELD_BY = "scope 'training'"
CLASS = "scope-not-left"
COUNT = 1500
BYTES = 6_144_000


def main() -> None:
    weight, target = tlmem.ones((16, 64)), tlmem.zeros((16, 64))
    with tlmem.scope("training"):
        for _ in range(1500):
            tlmem.multiply(weight, 0.999, out=weight)
            tlmem.subtract(target, 1.0 - weight, out=target)  # leaks here
    print(target.sum().item())


if __name__ == "__main__":
    main()
