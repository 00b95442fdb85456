"""Large libraries are imported one after the other: their code, data and Python objects."""

import importlib

LIBRARIES = ("pandas", "scipy.optimize", "scipy.stats", "scipy.signal", "scipy.interpolate")


def main() -> None:
    loaded = [importlib.import_module(name) for name in LIBRARIES]
    print(len(loaded))


if __name__ == "__main__":
    main()
