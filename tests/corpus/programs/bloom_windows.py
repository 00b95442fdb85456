"""Deduplicate a stream of message ids with rotating Bloom filters and an exact set per window."""
import hashlib
import random
import time

BITS = 1 << 22
rng = random.Random(40)


class Bloom:
    def __init__(self):
        self.bits = bytearray(BITS // 8)
        self.exact = set()

    def positions(self, key):
        h = hashlib.blake2b(key, digest_size=16).digest()
        for i in range(0, 16, 4):
            yield int.from_bytes(h[i : i + 4], "little") % BITS

    def add(self, key):
        for p in self.positions(key):
            self.bits[p >> 3] |= 1 << (p & 7)
        self.exact.add(key)

    def __contains__(self, key):
        return all(self.bits[p >> 3] & (1 << (p & 7)) for p in self.positions(key))


def main():
    current, previous = Bloom(), Bloom()
    dup = false_pos = new = 0
    recent = []
    for tick in range(175):
        for _ in range(260):
            if recent and rng.random() < 0.2:
                key = rng.choice(recent)
            else:
                key = rng.randbytes(20).hex().encode()
                recent.append(key)
            if key in current or key in previous:
                if key in current.exact or key in previous.exact:
                    dup += 1
                else:
                    false_pos += 1
            else:
                new += 1
                current.add(key)
        del recent[:-2000]
        if len(current.exact) > 7000:
            previous, current = current, Bloom()
        time.sleep(0.038)
    print(new, dup, false_pos)


main()
