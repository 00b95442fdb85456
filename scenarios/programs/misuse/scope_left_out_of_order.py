"""A scope is left by hand while one inside it, which a helper entered, is still entered."""

import tlmem

OUTCOME = "stable"
COUNT = 32


def begin() -> float:
    tlmem.scope("inner").__enter__()
    return float(tlmem.full((16, 64), 1.0).sum().item())


def main() -> None:
    total, refused = 0.0, 0
    for step in range(16_000):
        outer = tlmem.scope("outer")
        outer.__enter__()
        total += float(tlmem.full((16, 64), step).sum().item())
        if step % 500 == 0:
            total += begin()
        try:
            outer.__exit__(None, None, None)  # unbalanced-scope here
        except tlmem.UnbalancedScope:
            refused += 1
    print(f"{total:.3e}, {refused} refused")


if __name__ == "__main__":
    main()
