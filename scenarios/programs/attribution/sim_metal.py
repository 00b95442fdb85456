"""Tensors on a device whose driver keeps what was freed."""

import tlmem


def main() -> None:
    tlmem.device("sim-metal").policy("direct")
    total = 0.0
    for step in range(4000):
        with tlmem.scope("step"):
            total += float(tlmem.full((80, 80), step, device="sim-metal").sum().item())
    print(f"{total:.3e}")


if __name__ == "__main__":
    main()
