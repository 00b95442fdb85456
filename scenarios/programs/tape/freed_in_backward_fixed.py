"""A rule of the program frees only what it made itself."""

from typing import Any

import tlmem

OUTCOME = "stable"


def halved(context: Any, grad: tlmem.Tensor) -> tlmem.Tensor:
    half = grad * 0.5
    result = half + half
    half.free()
    return result


@tlmem.op(backward=halved)
def passed_on(context: Any, values: tlmem.Tensor) -> tlmem.Tensor:
    return values * 1


def main() -> None:
    weight = tlmem.randn((16, 16), seed=1, requires_grad=True)
    batch = tlmem.randn((8, 16), seed=2)
    for _ in tlmem.steps(8_000):
        hidden = tlmem.relu(batch @ weight)
        tlmem.sum(passed_on(hidden)).backward()
    print(weight.shape)


if __name__ == "__main__":
    main()
