"""The steps of retained-graphs, each with one pass that spends its graph, and numbers kept."""

import tlmem

OUTCOME = "stable"
STEPS = 18_000


def main() -> None:
    weight = tlmem.randn((32, 32), seed=1, requires_grad=True)
    batch = tlmem.randn((16, 32), seed=2)
    losses = []
    for _ in tlmem.steps(STEPS):
        loss = tlmem.mean((batch @ weight) ** 2)
        loss.backward()
        losses.append(loss.item())
        assert weight.grad is not None
        with tlmem.no_grad():
            tlmem.subtract(weight, 0.01 * weight.grad, out=weight)
    print(f"{losses[-1]:.3e}")


if __name__ == "__main__":
    main()
