"""A weight is updated between the loss and its backward pass, which would read the new values."""

import tlmem

OUTCOME = "stable"
COUNT = 20


def main() -> None:
    weight = tlmem.randn((16, 16), seed=1, requires_grad=True)
    batch = tlmem.randn((8, 16), seed=2, requires_grad=True)
    refused = 0
    for step in tlmem.steps(60_000):
        loss = tlmem.sum(batch @ weight)
        if step % 3000 == 0:
            with tlmem.no_grad():
                tlmem.multiply(weight, 0.999, out=weight)
        try:
            loss.backward()  # in-place-on-saved here
        except tlmem.InPlaceOnSaved:
            refused += 1
    print(f"{refused} refused")


if __name__ == "__main__":
    main()
