"""Each step keeps how its gradient pulls as a tensor with its history, and thus the gradient."""

import tlmem

OUTCOME = "leak"
HELD_BY = "tape 'multiply'"
CLASS = "grads-outlive-step"
COUNT = 2000
BYTES = 8_192_000
STEPS = 2000


def main() -> None:
    weight = tlmem.randn((32, 32), seed=1, requires_grad=True)
    batch = tlmem.randn((8, 32), seed=2)
    pulls = []
    for _ in tlmem.steps(STEPS):
        loss = tlmem.mean((batch @ weight) ** 2)
        loss.backward()  # leaks here
        assert weight.grad is not None
        pulls.append(tlmem.sum(weight * weight.grad))
        with tlmem.no_grad():
            tlmem.subtract(weight, 0.01 * weight.grad, out=weight)
    print(f"{pulls[-1].item():.3e}")


if __name__ == "__main__":
    main()
