"""A batch is taken out of its scope once, and registered by who receives it."""

import tlmem

OUTCOME = "stable"


def hand_on(batch: tlmem.Tensor) -> tlmem.Tensor:
    tlmem.unregister(batch)
    return batch


def main() -> None:
    total = 0.0
    for step in range(16_000):
        with tlmem.scope("outer") as outer:
            with tlmem.scope("step"):
                batch = hand_on(tlmem.full((16, 64), step))
            outer.register(batch)
            total += float(batch.sum().item())
    print(f"{total:.3e}")


if __name__ == "__main__":
    main()
