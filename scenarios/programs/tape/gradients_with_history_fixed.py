"""The steps of gradients-with-history, which keep a number each and no history."""

import tlmem

OUTCOME = "stable"
STEPS = 12_000


def main() -> None:
    weight = tlmem.randn((32, 32), seed=1, requires_grad=True)
    batch = tlmem.randn((8, 32), seed=2)
    pulls = []
    for _ in tlmem.steps(STEPS):
        loss = tlmem.mean((batch @ weight) ** 2)
        loss.backward()
        assert weight.grad is not None
        pulls.append(tlmem.sum(weight * weight.grad).item())
        with tlmem.no_grad():
            tlmem.subtract(weight, 0.01 * weight.grad, out=weight)
    print(f"{pulls[-1]:.3e}")


if __name__ == "__main__":
    main()
