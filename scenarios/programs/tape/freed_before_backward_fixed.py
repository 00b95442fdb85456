"""The layer's result is freed by hand when the pass that reads it is over."""

import tlmem

OUTCOME = "stable"


def main() -> None:
    weight = tlmem.randn((16, 16), seed=1, requires_grad=True)
    batch = tlmem.randn((8, 16), seed=2)
    for _ in tlmem.steps(16_000):
        hidden = tlmem.relu(batch @ weight)
        tlmem.sum(hidden * hidden).backward()
        hidden.free()
    print(weight.shape)


if __name__ == "__main__":
    main()
