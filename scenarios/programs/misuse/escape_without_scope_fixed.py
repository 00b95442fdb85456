"""The result escapes only where a scope is entered that it can leave."""

import tlmem

OUTCOME = "stable"


def norm(step: int) -> tlmem.Tensor:
    with tlmem.scope("norm"):
        return tlmem.escape(tlmem.full((16, 64), step) * 2.0)


def main() -> None:
    total = 0.0
    for step in range(16_000):
        total += float(norm(step).sum().item())
    print(f"{total:.3e}")


if __name__ == "__main__":
    main()
