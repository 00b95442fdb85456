"""Run batch jobs in stages: generate CSV, parse, group, serialise to JSON, compress, verify in a child."""
import csv
import hashlib
import io
import json
import lzma
import random
import subprocess
import sys
import time
from collections import defaultdict

rng = random.Random(70)
FIELDS = ["id", "store", "sku", "qty", "price", "note"]


def stage_generate(n):
    out = io.StringIO()
    w = csv.writer(out)
    w.writerow(FIELDS)
    for i in range(n):
        w.writerow([i, f"store{rng.randrange(50)}", f"sku{rng.randrange(9999)}", rng.randrange(1, 9),
                    f"{rng.random() * 90:.2f}", f"note {rng.getrandbits(64):x}"])
        if i % 600 == 599:
            time.sleep(0.04)
    return out.getvalue()


def stage_parse(text):
    rows = []
    for i, row in enumerate(csv.DictReader(io.StringIO(text))):
        row["qty"], row["price"] = int(row["qty"]), float(row["price"])
        rows.append(row)
        if i % 600 == 599:
            time.sleep(0.045)
    return rows


def stage_group(rows):
    groups = defaultdict(list)
    for r in rows:
        groups[r["store"]].append(r)
    time.sleep(0.2)
    return groups


def stage_pack(groups):
    c = lzma.LZMACompressor(preset=0)
    parts = []
    for store in sorted(groups):
        parts.append(c.compress(json.dumps(groups[store]).encode()))
        time.sleep(0.005)
    parts.append(c.flush())
    return b"".join(parts)


def stage_verify(blob):
    code = "import sys,lzma,hashlib;print(hashlib.md5(lzma.decompress(sys.stdin.buffer.read())).hexdigest())"
    return subprocess.run([sys.executable, "-c", code], input=blob, capture_output=True, check=True).stdout


def main():
    digest = hashlib.md5()
    for _ in range(4):
        text = stage_generate(9000)
        rows = stage_parse(text)
        del text
        groups = stage_group(rows)
        del rows
        blob = stage_pack(groups)
        del groups
        digest.update(stage_verify(blob))
        time.sleep(0.2)
    print(digest.hexdigest())


main()
