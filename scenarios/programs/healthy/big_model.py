"""A large model is built once, layer by layer, and used until the end."""

import numpy as np

OUTCOME = "stable"


def main() -> None:
    chance = np.random.default_rng(0)
    layers = [chance.random((300, 300)) / 150 for _ in range(40)]
    state = np.ones(300)
    for _ in range(150):
        for layer in layers:
            state = np.maximum(layer @ state, 0.0)
        state = state / np.linalg.norm(state)
    print(f"{state.max():.4f} from {len(layers)} layers")


if __name__ == "__main__":
    main()
