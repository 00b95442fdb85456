"""Page through report rows with generator cursors and show only the first pages of each report."""
import itertools
import random
import time

rng = random.Random(88)
open_cursors = []


def query(report, n):
    rows = [{"report": report, "id": i, "amount": rng.random(), "label": f"{report}-{i}"} for i in range(n)]
    totals = {}
    for r in rows:
        totals[r["id"] % 7] = totals.get(r["id"] % 7, 0) + r["amount"]
        yield r["label"], totals[r["id"] % 7]


def open_report(report):
    cur = query(report, 110)
    open_cursors.append(cur)
    return cur


def first_pages(cur, pages):
    out = []
    for _ in range(pages):
        out.extend(itertools.islice(cur, 10))
    return out


def main():
    shown = 0
    for tick in range(165):
        for k in range(3):
            cur = open_report(f"r{tick}.{k}")
            shown += len(first_pages(cur, rng.choice((1, 2, 12))))
        scratch = [str(rng.random()) for _ in range(1500)]
        shown += len(max(scratch)) > 0
        time.sleep(0.041)
    print(shown, len(open_cursors))


main()
