"""A view of a frame's buffer escapes; its memory ends with the function all the same."""

import tlmem

OUTCOME = "stable"
COUNT = 32


def halves(step: int, keep: bool) -> tlmem.Tensor | None:
    with tlmem.frame(1, "halves"):  # outlives-frame here
        buffer = tlmem.get_buffer(0, 4096).tensor((16, 64))
        tlmem.multiply(tlmem.full((16, 64), step), 0.5, out=buffer)
        return tlmem.escape(buffer) if keep else None


def main() -> None:
    kept = 0
    for step in range(16_000):
        result = halves(step, step % 500 == 0)
        kept += result is not None
    print(f"{kept} results, and none of them can be read")


if __name__ == "__main__":
    main()
