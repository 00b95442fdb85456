"""A rule of the program frees what it takes for a temporary of its own; another rule reads it.

Fixed: A rule of the program frees only what it made itself.
"""

from typing import Any

from tlmem.scenarios.harness.switch import FIXED

import tlmem

OUTCOME = "stable"
COUNT = 20


def tidy(context: Any, grad: tlmem.Tensor) -> tlmem.Tensor:
    half = grad * 0.5
    result = half + half
    half.free()
    if not FIXED and context.last_use:
        context.values.free()
    return result


@tlmem.op(backward=tidy)
def passed_on(context: Any, values: tlmem.Tensor, last_use: bool) -> tlmem.Tensor:
    context.values, context.last_use = values, last_use
    return values * 1


def main() -> None:
    weight = tlmem.randn((16, 16), seed=1, requires_grad=True)
    batch = tlmem.randn((8, 16), seed=2)
    refused = 0
    for step in tlmem.steps(8_000 if FIXED else 20_000):
        hidden = tlmem.relu(batch @ weight)
        loss = tlmem.sum(passed_on(hidden, step % 1000 == 0))
        try:
            loss.backward()  # use-after-free here
        except tlmem.UseAfterFree:
            refused += 1
    print(f"{refused} refused")


if __name__ == "__main__":
    main()
