"""Tensors of tlmem with scopes, an arena and a pool that keeps what it is given."""

import tlmem


def main() -> None:
    pool = tlmem.TensorPool(400, name="buffers")
    kept, total = [], 0.0
    for step in range(6000):
        with tlmem.scope("step"):
            image = tlmem.full((64, 64), step)
            total += float((image * 2 + 1).mean().item())
        if step % 16 == 0:
            pool.release(tlmem.full((48 + step // 400, 64), step))
            kept.append(tlmem.full((32, 32), step))
    print(f"{total:.3e} {len(kept)}")


if __name__ == "__main__":
    main()
