"""Parse product feeds with ElementTree, keep only per-category totals and drop the tree."""
import io
import random
import time
import xml.etree.ElementTree as ET
from collections import defaultdict

rng = random.Random(31)
CATEGORIES = [f"cat{i}" for i in range(40)]


def make_feed(n):
    root = ET.Element("feed", version="2")
    for i in range(n):
        p = ET.SubElement(root, "product", id=str(i), category=rng.choice(CATEGORIES))
        ET.SubElement(p, "name").text = f"Product {rng.randrange(10**7)}"
        ET.SubElement(p, "price", currency="EUR").text = f"{rng.random() * 100:.2f}"
        ET.SubElement(p, "stock").text = str(rng.randrange(500))
    return ET.tostring(root)


def digest_tree(data, totals):
    root = ET.fromstring(data)
    for p in root.iter("product"):
        totals[p.get("category")] += float(p.findtext("price")) * int(p.findtext("stock"))
    return root


def digest_stream(data, totals):
    for _, el in ET.iterparse(io.BytesIO(data)):
        if el.tag == "product":
            totals[el.get("category")] += float(el.findtext("price"))
            el.clear()


def main():
    totals = defaultdict(float)
    previous = None
    for i in range(60):
        size = 400 + 1100 * ((i // 6) % 3)
        feed = make_feed(size)
        tree = digest_tree(feed, totals)
        if previous is not None:
            ids = {p.get("id") for p in previous}
            totals["overlap"] += sum(p.get("id") in ids for p in tree)
        previous = tree
        digest_stream(feed, totals)
        time.sleep(0.1)
    print(len(totals), round(sum(totals.values())))


main()
