"""Event-source bank accounts in an in-memory SQLite store with snapshots and log truncation."""
import json
import random
import sqlite3
import time

rng = random.Random(99)
db = sqlite3.connect(":memory:")
db.executescript(
    """
    create table event(seq integer primary key, account int, body text);
    create table snapshot(account int primary key, seq int, body text);
    create index event_account on event(account);
    """
)
ACCOUNTS = 300
state = {a: {"balance": 0, "count": 0, "notes": []} for a in range(ACCOUNTS)}


def apply(acc, ev):
    acc["balance"] += ev["amount"]
    acc["count"] += 1
    acc["notes"].append(ev["memo"])
    del acc["notes"][:-20]


def append(seq):
    a = rng.randrange(ACCOUNTS)
    ev = {"amount": rng.randrange(-500, 600), "memo": f"payment {rng.getrandbits(96):x}", "pad": "x" * 150}
    db.execute("insert into event values(?,?,?)", (seq, a, json.dumps(ev)))
    apply(state[a], ev)


def snapshot(seq):
    db.executemany(
        "insert or replace into snapshot values(?,?,?)",
        [(a, seq, json.dumps(s)) for a, s in state.items()],
    )
    db.execute("delete from event where seq <= ?", (seq,))
    db.commit()


def rebuild(account):
    row = db.execute("select seq, body from snapshot where account=?", (account,)).fetchone()
    acc = json.loads(row[1]) if row else {"balance": 0, "count": 0, "notes": []}
    for (body,) in db.execute("select body from event where account=? order by seq", (account,)):
        apply(acc, json.loads(body))
    return acc


def main():
    seq = 0
    for tick in range(165):
        for _ in range(180):
            seq += 1
            append(seq)
        if tick % 30 == 29:
            snapshot(seq)
        a = rng.randrange(ACCOUNTS)
        assert rebuild(a)["balance"] == state[a]["balance"]
        time.sleep(0.041)
    print("events", seq, "left", db.execute("select count(*) from event").fetchone()[0])


main()
