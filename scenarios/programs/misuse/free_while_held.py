"""A tensor is freed by hand while a field holds it; who reads the field finds it gone."""

import tlmem

OUTCOME = "stable"
COUNT = 36


def main() -> None:
    total, refused = 0.0, 0
    for step in range(36_000):
        layer = tlmem.struct({"weight": tlmem.full((16, 64), step)}, "Layer")
        weight = layer.weight
        if step % 1000 == 0:
            weight.free()
            try:
                total += (layer.weight * 2).sum().item()  # use-after-free here
            except tlmem.UseAfterFree:
                refused += 1
    print(f"{total}, {refused} refused")


if __name__ == "__main__":
    main()
