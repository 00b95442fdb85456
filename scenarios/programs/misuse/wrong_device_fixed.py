"""Batches from another device are copied to that of the weights before both meet."""

import tlmem

OUTCOME = "stable"


def main() -> None:
    tlmem.device("sim-metal").policy("persistent-reusing")
    weight, total = tlmem.ones((16, 64)), 0.0
    for step in range(16_000):
        with tlmem.scope("step"):
            there = "sim-metal" if step % 10 == 0 else "cpu"
            batch = tlmem.full((16, 64), step, device=there).to("cpu")
            total += float((batch * weight).sum().item())
    print(f"{total:.3e}")


if __name__ == "__main__":
    main()
