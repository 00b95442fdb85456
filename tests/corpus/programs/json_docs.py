import json
import time
import numpy as np


class Store:
    docs = []

    def ingest(self, n):
        text = json.dumps({"id": n, "tags": [f"tag{n}-{k}" for k in range(20)], "body": {str(k): k * n for k in range(30)}})
        self.docs.append(json.loads(text))


def main():
    st = Store()
    end = time.monotonic() + 4.0
    n = 0
    while time.monotonic() < end:
        for _ in range(4):
            st.ingest(n)
            n += 1
        np.histogram(np.random.default_rng(n).random(5_000), 20)
        time.sleep(0.002)


main()
