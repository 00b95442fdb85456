"""The Layer of shared-field is handed over without a count of its own: one of them is alive."""

from tlmem.scenarios.harness.switch import long_enough

import tlmem

OUTCOME = "stable"


def step(layer: tlmem.Struct) -> tlmem.Struct:
    weight = layer.weight * 0.999
    return tlmem.unregister(tlmem.struct({"weight": weight, "bias": layer.bias}, "Layer"))


def main() -> None:
    with tlmem.scope("training") as training:
        layer = tlmem.struct({"weight": tlmem.ones((16, 64)), "bias": tlmem.zeros(64)}, "Layer")
        for _ in long_enough(9000):
            previous = layer
            with tlmem.scope("step"):
                layer = step(previous)
            training.register(layer)
            tlmem.release_safe(previous)
        print(layer.weight.sum().item())


if __name__ == "__main__":
    main()
