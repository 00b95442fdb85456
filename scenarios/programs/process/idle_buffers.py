"""A peak of tensors is over, and their device keeps the buffers, though little is needed since.

Fixed: A peak of tensors is over, and their device gives the buffers back.
"""

from tlmem.scenarios.harness.switch import FIXED, long_enough

import tlmem

OUTCOME = "retained"
DEVICE = "cpu" if FIXED else "sim-metal"


def main() -> None:
    device = tlmem.device(DEVICE)
    device.policy("persistent-reusing")
    with tlmem.scope("peak"):
        for step in range(300):
            tlmem.full((200, 200 + step), step, device=DEVICE)
    if FIXED:
        device.policy("bounded")
    total = 0.0
    for step in long_enough(10_000 if FIXED else 40_000):
        with tlmem.scope("step"):
            total += float(tlmem.full((64, 64), step, device=DEVICE).sum().item())
    print(f"{total:.3e}")


if __name__ == "__main__":
    main()
