"""Tensors with named holders in scopes, structs and a pool, one in a thousand kept: who holds what.

Makes about ten million events at size 1, most of them of ownership.
"""

import sys
import time

import tlmem


def work(steps: int) -> list[tlmem.Tensor]:
    """Each step has a scope, temporaries, a struct, a pool and a count with a name."""
    rows = tlmem.TensorPool(name="rows")
    kept = []
    for step in range(steps):
        with tlmem.scope("step"):
            batch = tlmem.ones((8, 8))
            row = rows.acquire((8,))
            if row is None:
                row = tlmem.zeros((8,))
            tlmem.acquire(batch, "reader")
            pair = tlmem.struct({"batch": batch, "scaled": batch * 0.5}, "Pair")
            tlmem.release(batch, "reader")
            rows.release(row)
            if step % 1000 == 0:
                kept.append(tlmem.escape(pair.scaled))
    return kept


if __name__ == "__main__":
    began = time.monotonic_ns()
    kept = work(int(322_000 * float(sys.argv[1])))
    print(began, time.monotonic_ns())
