"""The history of python-objects keeps its latest hundred entries."""

from collections import deque

import numpy as np
from tlmem.scenarios.harness.switch import long_enough

OUTCOME = "stable"


def main() -> None:
    history: deque[dict[str, object]] = deque(maxlen=100)
    for step in long_enough(8000):
        values = np.sqrt(np.arange(20_000.0))
        history.append(
            {"step": step, "note": f"step {step} of the run " * 100, "size": values.size}
        )
    print(f"{len(history)} notes")


if __name__ == "__main__":
    main()
