"""The buffers of pool-never-read come out of the pool again: one is enough."""

from tlmem.scenarios.harness.switch import long_enough

import tlmem

OUTCOME = "stable"

buffers = tlmem.TensorPool(max_per_key=1_000_000, name="buffers")


def main() -> None:
    total = 0.0
    for step in long_enough(6_000):
        with tlmem.scope("step"):
            buffer = tlmem.full((16, 64), step, pool=buffers)
            total += float(buffer.sum().item())
            buffers.release(buffer)
    print(f"{total:.3e}, {len(buffers)} kept")


if __name__ == "__main__":
    main()
