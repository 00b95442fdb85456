import sys
import time
import hashlib

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
pages = []
digest = hashlib.sha256()


def render(i):
    head = "<h1>Report %d</h1>" % i
    return head + "".join("<p>%05d</p>" % (i * k) for k in range(80))


for i in range(int(T * 170)):
    for k in range(4):
        html = render(i * 4 + k)
        pages.append(html)
        digest.update(html.encode())
    time.sleep(0.0048)
print(digest.hexdigest()[:12])
