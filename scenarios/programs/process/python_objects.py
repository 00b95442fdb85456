"""A history of texts and dicts grows in each step; the arrays are only temporaries.

Fixed: The history of python-objects keeps its latest hundred entries.
"""

from collections import deque
from collections.abc import MutableSequence

import numpy as np
from tlmem.scenarios.harness.switch import FIXED, repeat

OUTCOME = "python"


def main() -> None:
    history: MutableSequence[dict[str, object]] = deque(maxlen=100) if FIXED else []
    for step in repeat(6000, fixed=8000):
        values = np.sqrt(np.arange(20_000.0))
        history.append(
            {"step": step, "note": f"step {step} of the run " * 100, "size": values.size}
        )
    print(f"{len(history)} notes")


if __name__ == "__main__":
    main()
