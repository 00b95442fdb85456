"""A history of texts and dicts grows in each step; the arrays are only temporaries."""

import numpy as np

OUTCOME = "python"


def main() -> None:
    history = []
    for step in range(6000):
        values = np.sqrt(np.arange(20_000.0))
        history.append(
            {"step": step, "note": f"step {step} of the run " * 100, "size": values.size}
        )
    print(f"{len(history)} notes")


if __name__ == "__main__":
    main()
