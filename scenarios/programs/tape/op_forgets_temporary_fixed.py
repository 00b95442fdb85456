"""The op of op-forgets-temporary without a count of its own: what it saves goes with its rule."""

from typing import Any

import tlmem

OUTCOME = "stable"


def backward(context: Any, grad: tlmem.Tensor) -> tlmem.Tensor:
    values, gate = context.saved
    return grad * (gate + values * gate * (1 - gate))


@tlmem.op(backward=backward)
def swish(context: Any, values: tlmem.Tensor) -> tlmem.Tensor:
    gate = tlmem.sigmoid(values)
    context.save(values, gate)
    return values * gate


def main() -> None:
    weight = tlmem.randn((32, 32), seed=1, requires_grad=True)
    batch = tlmem.randn((8, 32), seed=2)
    for _ in tlmem.steps(12_000):
        loss = tlmem.mean(swish(batch @ weight))
        loss.backward()
    print(f"{loss.item():.4f}")


if __name__ == "__main__":
    main()
