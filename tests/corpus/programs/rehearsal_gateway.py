"""Rehearse a payment run against a mocked gateway and print the totals of its replies."""
import random
import time
from unittest import mock

rng = random.Random(19)


class Gateway:
    def charge(self, account, amount, meta):
        raise NotImplementedError

    def refund(self, account, amount):
        raise NotImplementedError


def build_gateway():
    g = mock.create_autospec(Gateway, instance=True)
    g.charge.side_effect = lambda account, amount, meta: {"ok": amount < 9500, "account": account}
    g.refund.side_effect = lambda account, amount: {"ok": True}
    return g


def payment():
    return (
        f"DE{rng.randrange(10**18):018d}",
        rng.randrange(10000),
        {"reference": f"invoice {rng.getrandbits(64):x}", "lines": [f"pos {rng.randrange(10**6)}" for _ in range(18)]},
    )


def main():
    gateway = build_gateway()
    good = refunds = 0
    for tick in range(160):
        batch = [payment() for _ in range(40)]
        for account, amount, meta in batch:
            if gateway.charge(account, amount, meta)["ok"]:
                good += 1
            if rng.random() < 0.05:
                refunds += gateway.refund(account, amount)["ok"]
        time.sleep(0.042)
    print(good, refunds)


main()
