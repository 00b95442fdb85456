"""Serve weather forecasts for an endless stream of places through a cache with time-to-live and a periodic sweep."""
import time

import numpy as np

TTL = 400
SWEEP = 120


class TTLCache:
    def __init__(self, ttl):
        self.ttl = ttl
        self.data = {}
        self.hits = self.misses = 0

    def get(self, key, now, build):
        entry = self.data.get(key)
        if entry is not None and entry[0] > now:
            self.hits += 1
            return entry[1]
        self.misses += 1
        value = build(key)
        self.data[key] = (now + self.ttl, value)
        return value

    def sweep(self, now):
        dead = [k for k, (expires, _) in self.data.items() if expires <= now]
        for k in dead:
            del self.data[k]
        return len(dead)


def forecast(key):
    lat, lon = key
    hours = np.arange(2400)
    base = 15 + 10 * np.cos(lat / 20) + 6 * np.sin(hours / 24 * 2 * np.pi + lon)
    return base + 0.3 * np.sin(hours / 7.0)


def main():
    rng = np.random.default_rng(2)
    cache = TTLCache(TTL)
    total, swept = 0.0, 0
    for now in range(2600):
        if rng.random() < 0.3:
            key = (int(rng.zipf(1.6)) % 90, 0)
        else:
            key = (int(rng.integers(-90, 90)), int(rng.integers(0, 360)) + now)
        series = cache.get(key, now, forecast)
        total += float(series[now % series.size])
        if now % SWEEP == 0:
            swept += cache.sweep(now)
        if now % 4 == 0:
            time.sleep(0.007)
    print("hits", cache.hits, "misses", cache.misses, "swept", swept, "mean", round(total / 2600, 2))


if __name__ == "__main__":
    main()
