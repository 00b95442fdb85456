"""A peak of tensors is over, and their device keeps the buffers, though little is needed since."""

from tlmem.scenarios.harness.switch import long_enough

import tlmem

OUTCOME = "retained"


def main() -> None:
    tlmem.device("sim-metal").policy("persistent-reusing")
    with tlmem.scope("peak"):
        for step in range(300):
            tlmem.full((200, 200 + step), step, device="sim-metal")
    total = 0.0
    for step in long_enough(40_000):
        with tlmem.scope("step"):
            total += float(tlmem.full((64, 64), step, device="sim-metal").sum().item())
    print(f"{total:.3e}")


if __name__ == "__main__":
    main()
