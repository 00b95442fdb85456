"""Track taxi dispatches in an in-memory SQLite database with a live table and an audit table."""
import random
import sqlite3
import time

rng = random.Random(13)
db = sqlite3.connect(":memory:")
db.executescript(
    """
    create table live(id integer primary key, cab text, place text, eta int);
    create table audit(ts int, action text, detail text);
    create index live_eta on live(eta);
    """
)


def note(ts, action, detail):
    db.execute("insert into audit values(?,?,?)", (ts, action, detail))


def dispatch(ts, n):
    place = f"{rng.randrange(300)} Main Street, district {rng.randrange(90)}, gate {rng.getrandbits(64):x}"
    db.execute("insert into live values(?,?,?,?)", (n, f"cab{rng.randrange(500)}", place, ts + rng.randrange(3, 15)))
    note(ts, "dispatch", f"ride {n} to {place} " + "." * 180)


def arrive(ts):
    ids = [r[0] for r in db.execute("select id from live where eta <= ?", (ts,))]
    for i in ids:
        note(ts, "arrive", f"ride {i} " + "." * 180)
    db.executemany("delete from live where id=?", [(i,) for i in ids])
    return len(ids)


def main():
    n = arrived = 0
    for ts in range(170):
        for _ in range(75):
            n += 1
            dispatch(ts, n)
        arrived += arrive(ts)
        db.commit()
        time.sleep(0.041)
    print(n, arrived, db.execute("select count(*) from live").fetchone()[0])


main()
