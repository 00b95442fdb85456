"""Serve Zipf-distributed page requests through an LRU cache of rendered HTML pages."""
import random
import time
from collections import OrderedDict

CAPACITY = 2600
PAGES = 40000
rng = random.Random(11)


def render(page_id):
    r = random.Random(page_id)
    rows = "".join(
        f"<tr><td>{page_id}</td><td>{r.randrange(10**9)}</td></tr>" for _ in range(60)
    )
    return f"<html><title>Page {page_id}</title><table>{rows}</table></html>"


class PageCache:
    def __init__(self, capacity):
        self.capacity = capacity
        self.data = OrderedDict()
        self.hits = self.misses = 0

    def get(self, page_id):
        page = self.data.get(page_id)
        if page is not None:
            self.hits += 1
            self.data.move_to_end(page_id)
            return page
        self.misses += 1
        page = self.data[page_id] = render(page_id)
        if len(self.data) > self.capacity:
            self.data.popitem(last=False)
        return page


def zipf():
    return int(PAGES ** rng.random())


def main():
    cache = PageCache(CAPACITY)
    served = 0
    for tick in range(160):
        for _ in range(85):
            served += len(cache.get(zipf()))
        time.sleep(0.04)
    print("hits", cache.hits, "misses", cache.misses, "bytes", served)


main()
