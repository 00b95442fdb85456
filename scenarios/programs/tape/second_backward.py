"""Two losses share a layer; the first backward pass spends its graph, the second needs it again.

Fixed: Two losses that share a layer are added, and one pass serves both.
"""

from tlmem.scenarios.harness.switch import FIXED

import tlmem

OUTCOME = "stable"
COUNT = 20


def main() -> None:
    weight = tlmem.randn((16, 16), seed=1, requires_grad=True)
    batch = tlmem.randn((8, 16), seed=2)
    refused = 0
    for step in tlmem.steps(20_000):
        hidden = tlmem.tanh(batch @ weight)
        near, far = tlmem.sum(hidden), tlmem.mean(hidden**2)
        if FIXED:
            (near + far).backward()
            continue
        near.backward(retain_graph=step % 1000 > 0)
        try:
            far.backward()  # second-backward here
        except tlmem.SecondBackward:
            refused += 1
    print(f"{refused} refused")


if __name__ == "__main__":
    main()
