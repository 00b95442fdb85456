"""A server keeps each answer and ends by os._exit: nothing is cleaned up, and nothing hidden.

Fixed: A server lets go of each answer that it sent, and ends by os._exit.
"""

import os
import sys

from tlmem.scenarios.harness.switch import FIXED, repeat

import tlmem

OUTCOME = "leak"
HELD_BY = "scope 'answers'"
CLASS = "scope-not-left"
COUNT = 2000
BYTES = 8_192_000


def main() -> None:
    total = 0.0
    with tlmem.scope("answers") as answers:
        for step in repeat(2000, fixed=6000):
            with tlmem.scope("request"):
                question = tlmem.full((16, 64), step)
                answer = question * 0.5  # leaks here
                total += float(answer.sum().item())
                if not FIXED:
                    answers.register(tlmem.unregister(answer))
        print(f"{total:.3e}")
        sys.stdout.flush()
        os._exit(0)


if __name__ == "__main__":
    main()
