"""Two losses that share a layer are added, and one pass serves both."""

import tlmem

OUTCOME = "stable"


def main() -> None:
    weight = tlmem.randn((16, 16), seed=1, requires_grad=True)
    batch = tlmem.randn((8, 16), seed=2)
    for _ in tlmem.steps(20_000):
        hidden = tlmem.tanh(batch @ weight)
        near, far = tlmem.sum(hidden), tlmem.mean(hidden**2)
        (near + far).backward()
    print(weight.shape)


if __name__ == "__main__":
    main()
