"""Who is done with the layer lets go of the layer, and its field goes with it."""

from tlmem.scenarios.harness.switch import long_enough

import tlmem

OUTCOME = "stable"


def main() -> None:
    total = 0.0
    for step in long_enough(4_000):
        with tlmem.scope("step"):
            layer = tlmem.struct({"weight": tlmem.full((16, 64), step)}, "Layer")
            total += (layer.weight * 2).sum().item()
    print(total)


if __name__ == "__main__":
    main()
