"""A batch is taken out of its scope to be handed on, and once more by who receives it.

Fixed: A batch is taken out of its scope once, and registered by who receives it.
"""

from tlmem.scenarios.harness.switch import FIXED, repeat

import tlmem

OUTCOME = "stable"
COUNT = 32


def hand_on(batch: tlmem.Tensor) -> tlmem.Tensor:
    tlmem.unregister(batch)
    return batch


def main() -> None:
    total, refused = 0.0, 0
    for step in repeat(16_000, fixed=4_000):
        with tlmem.scope("outer") as outer:
            with tlmem.scope("step"):
                batch = hand_on(tlmem.full((16, 64), step))
            if not FIXED and step % 500 == 0:
                try:
                    tlmem.unregister(batch)  # unpaired-register here
                except tlmem.NotRegistered:
                    refused += 1
            outer.register(batch)
            total += float(batch.sum().item())
    print(f"{total:.3e}, {refused} refused")


if __name__ == "__main__":
    main()
