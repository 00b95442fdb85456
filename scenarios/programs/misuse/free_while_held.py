"""A tensor is freed by hand while a field holds it; who reads the field finds it gone.

Fixed: Who is done with the layer lets go of the layer, and its field goes with it.
"""

from tlmem.scenarios.harness.switch import FIXED, repeat

import tlmem

OUTCOME = "stable"
COUNT = 36


def main() -> None:
    total, refused = 0.0, 0
    for step in repeat(18_000, fixed=4_000):
        layer = tlmem.struct({"weight": tlmem.full((16, 64), step)}, "Layer")
        if not FIXED and step % 500 == 0:
            layer.weight.free()
        try:
            total += (layer.weight * 2).sum().item()  # use-after-free here
        except tlmem.UseAfterFree:
            refused += 1
    print(f"{total}, {refused} refused")


if __name__ == "__main__":
    main()
