"""The caller of forgotten-promote registers what it was handed: the count goes to its own scope."""

from tlmem.scenarios.harness.switch import long_enough

import tlmem

OUTCOME = "stable"


def gradient(step: int) -> tlmem.Tensor:
    with tlmem.scope("gradient"):
        noise = tlmem.full((16, 64), step)
        result = noise * 0.5
        return tlmem.promote(result)


def main() -> None:
    total = 0.0
    for step in long_enough(6_000):
        with tlmem.scope("step"):
            total += float(tlmem.register(gradient(step)).sum().item())
    print(f"{total:.3e}")


if __name__ == "__main__":
    main()
