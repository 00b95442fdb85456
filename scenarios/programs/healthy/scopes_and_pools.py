"""Scopes in scopes, promotions, exceptions and a pool, thousands of times: nothing is left."""

import threading

import tlmem

OUTCOME = "stable"
ROUNDS, THREADS, SHAPES = 6000, 2, ((32, 8), (64,), (7, 7))


class Refused(Exception):
    """What the program raises to leave a scope early."""


def halved(tensor: tlmem.Tensor) -> tlmem.Tensor:
    """A result that outlives the scope it was made in."""
    with tlmem.scope("halved"):
        kept = tensor * 0.5
        tlmem.promote(kept)
    return tlmem.register(kept)


def one_round(pool: tlmem.TensorPool, number: int) -> float:
    with tlmem.scope("round"):
        tensor = tlmem.full(SHAPES[number % len(SHAPES)], 2.0, pool=pool)
        smaller = halved(halved(tensor))
        try:
            with tlmem.scope("refused"):
                tlmem.zeros(100)
                raise Refused
        except Refused:
            total = (smaller + tensor).sum().item()
        outside = tlmem.ones(3).escape()
    outside.free()
    return total


def work(totals: list[float]) -> None:
    pool = tlmem.TensorPool()
    total = 0.0
    for number in range(ROUNDS):
        tlmem.mark("round", number)
        total += one_round(pool, number)
    totals.append(total)


def main() -> None:
    totals: list[float] = []
    threads = [threading.Thread(target=work, args=(totals,)) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"{len(totals)} threads, {totals[0]:.0f}")


if __name__ == "__main__":
    main()
