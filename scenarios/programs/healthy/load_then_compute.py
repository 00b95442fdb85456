"""Arrays are loaded and reduced to a number at the start; the rest of the run only computes."""

import hashlib
import time

import numpy as np

OUTCOME = "stable"
SECONDS = 2.0


def load() -> float:
    raw = [np.ones(5_000) * number for number in range(20)]
    return float(sum(part.sum() for part in raw))


total, digest = load(), b""
end = time.monotonic() + SECONDS
while time.monotonic() < end:
    digest = hashlib.sha256(digest * 100).digest()
print(f"{total:.0f}, {len(digest)} bytes")
