"""Each step returns a new Layer with one count too many: it stays, and its fields with it.

Fixed: The Layer of shared-field is handed over without a count of its own: one of them is alive.
"""

from tlmem.scenarios.harness.switch import FIXED, repeat

import tlmem

OUTCOME = "leak"
HELD_BY = "field weight of Layer"
CLASS = "field-forgotten"
COUNT = 1500
BYTES = 6_144_000


def step(layer: tlmem.Struct) -> tlmem.Struct:
    weight = layer.weight * 0.999  # leaks here
    new = tlmem.struct({"weight": weight, "bias": layer.bias}, "Layer")
    if not FIXED:
        tlmem.acquire(new, "returned")
    return tlmem.unregister(new)


def main() -> None:
    with tlmem.scope("training") as training:
        layer = tlmem.struct({"weight": tlmem.ones((16, 64)), "bias": tlmem.zeros(64)}, "Layer")
        for _ in repeat(1500, fixed=4_000):
            previous = layer
            with tlmem.scope("step"):
                layer = step(previous)
            training.register(layer)
            tlmem.release_safe(previous)
        print(layer.weight.sum().item())


if __name__ == "__main__":
    main()
