"""Validate device configurations and report deviations through the warnings module."""
import random
import time
import warnings

rng = random.Random(7)
counts = {}


class ConfigWarning(UserWarning):
    pass


def show(message, category, filename, lineno, file=None, line=None):
    counts[category.__name__] = counts.get(category.__name__, 0) + 1


warnings.showwarning = show
warnings.simplefilter("default", ConfigWarning)


def make_config(n):
    return {f"port{i}": rng.randrange(0, 70000) for i in range(25)} | {"name": f"dev-{n}", "serial": f"{rng.getrandbits(128):x}"}


def validate(cfg):
    bad = {k: v for k, v in cfg.items() if isinstance(v, int) and v > 60000}
    if bad:
        detail = ", ".join(f"{k}={v} out of range 0..60000" for k, v in bad.items())
        warnings.warn(f"device {cfg['name']} serial {cfg['serial']}: {detail}; full config {cfg}", ConfigWarning)
    return len(bad)


def main():
    bad = n = 0
    for tick in range(170):
        for _ in range(65):
            n += 1
            bad += validate(make_config(n))
        time.sleep(0.038)
    print(n, bad, counts)


main()
