"""Each pass is told to retain its graph, and the losses are kept: so are all saved values."""

import tlmem

OUTCOME = "leak"
HELD_BY = "tape 'power'"
CLASS = "saved-outlives-backward"
COUNT = 2000
BYTES = 4_096_000
STEPS = 2000


def main() -> None:
    weight = tlmem.randn((32, 32), seed=1, requires_grad=True)
    batch = tlmem.randn((16, 32), seed=2)
    losses = []
    for _ in tlmem.steps(STEPS):
        distance = batch @ weight  # leaks here
        loss = tlmem.mean(distance**2)
        loss.backward(retain_graph=True)
        losses.append(loss)
        assert weight.grad is not None
        with tlmem.no_grad():
            tlmem.subtract(weight, 0.01 * weight.grad, out=weight)
    print(f"{losses[-1].item():.3e}")


if __name__ == "__main__":
    main()
