"""Switch tenant settings through a context variable for each request of a long-running worker."""
import contextvars
import random
import time

rng = random.Random(80)
settings = contextvars.ContextVar("settings", default=None)
tokens = []


def enter(tenant):
    cfg = {
        "tenant": tenant,
        "flags": {f"flag{i}": rng.random() < 0.5 for i in range(10)},
        "quota": [rng.randrange(10**6) for _ in range(20)],
        "banner": f"welcome {tenant} {rng.getrandbits(512):x}",
    }
    tokens.append(settings.set(cfg))


def leave_if_nested(depth):
    if depth > 1:
        settings.reset(tokens.pop())


def handle(n):
    depth = rng.choice((1, 1, 2))
    for d in range(depth):
        enter(f"tenant-{n % 97}-{d}")
    cfg = settings.get()
    result = sum(cfg["quota"]) + len(cfg["banner"])
    leave_if_nested(depth)
    return result


def main():
    total = n = 0
    for tick in range(165):
        for _ in range(30):
            n += 1
            total += handle(n)
        time.sleep(0.041)
    print(n, total)


main()
