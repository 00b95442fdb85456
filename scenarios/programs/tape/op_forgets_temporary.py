"""An op of the program acquires a temporary for its rule under a name that nobody releases.

Fixed: The op of op-forgets-temporary without a count of its own: what it saves goes with its rule.
"""

from typing import Any

from tlmem.scenarios.harness.switch import FIXED

import tlmem

OUTCOME = "leak"
HELD_BY = "swish"
CLASS = "over-retained"
COUNT = 3000
BYTES = 3_072_000


def backward(context: Any, grad: tlmem.Tensor) -> tlmem.Tensor:
    values, gate = context.saved
    return grad * (gate + values * gate * (1 - gate))


@tlmem.op(backward=backward)
def swish(context: Any, values: tlmem.Tensor) -> tlmem.Tensor:
    gate = tlmem.sigmoid(values)  # leaks here
    if not FIXED:
        tlmem.acquire(gate, "swish")
    context.save(values, gate)
    return values * gate


def main() -> None:
    weight = tlmem.randn((32, 32), seed=1, requires_grad=True)
    batch = tlmem.randn((8, 32), seed=2)
    for _ in tlmem.steps(12_000 if FIXED else 3000):
        loss = tlmem.mean(swish(batch @ weight))
        loss.backward()
    print(f"{loss.item():.4f}")


if __name__ == "__main__":
    main()
