"""A pipeline in pandas: frames are made, joined and grouped, and the results are kept."""

import numpy as np
import pandas as pd


def main() -> None:
    rng = np.random.default_rng(2)
    names = pd.DataFrame({"key": range(500), "name": [f"customer {i}" for i in range(500)]})
    kept = []
    for step in range(60):
        sales = pd.DataFrame({"key": rng.integers(0, 500, 20_000), "value": rng.random(20_000)})
        joined = sales.merge(names, on="key")
        joined["label"] = joined["name"] + f" of {step}"
        kept.append(joined.sort_values("value").head(4000).copy())
    print(sum(len(frame) for frame in kept))


if __name__ == "__main__":
    main()
