"""Run jobs, remember why some of them failed and print a failure summary at the end."""
import random
import time
from collections import Counter

rng = random.Random(73)
failures = []


class JobError(Exception):
    pass


def load(job):
    return [{"job": job, "row": i, "value": rng.random(), "text": f"{job}/{i}"} for i in range(70)]


def transform(rows):
    index = {r["text"]: r["value"] for r in rows}
    worst = max(index.values())
    if worst > 0.9975:
        raise JobError(f"value {worst:.4f} too large")
    return sum(index.values())


def run(job):
    rows = load(job)
    return transform(rows)


def main():
    done = 0
    for tick in range(180):
        for k in range(24):
            job = f"job-{tick}-{k}"
            try:
                run(job)
                done += 1
            except JobError as e:
                failures.append((job, e))
        time.sleep(0.038)
    print(done, Counter(str(e)[:9] for _, e in failures).most_common(3))


main()
