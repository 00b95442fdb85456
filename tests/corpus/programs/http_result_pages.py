"""A small HTTP job server with clients in threads; results are kept for the last jobs only."""
import io
import sys
import threading
import time
import urllib.request
from collections import OrderedDict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
RESULTS = OrderedDict()
LOCK = threading.Lock()
KEEP = 40


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        signal = np.frombuffer(body, dtype=np.float64)
        spec = np.abs(np.fft.rfft(signal * np.hanning(signal.size)))
        with LOCK:
            RESULTS[self.path] = spec
            while len(RESULTS) > KEEP:
                RESULTS.popitem(last=False)
        out = io.BytesIO()
        np.save(out, spec[:64])
        self.send_response(200)
        self.send_header("Content-Length", str(out.tell()))
        self.end_headers()
        self.wfile.write(out.getvalue())

    def log_message(self, *args):
        pass


def client(port, name, stop, counts):
    rng = np.random.default_rng(name)
    while time.perf_counter() < stop:
        job = counts[name]
        data = rng.normal(size=2048).tobytes()
        url = f"http://127.0.0.1:{port}/job/{name}/{job}"
        with urllib.request.urlopen(urllib.request.Request(url, data=data)) as resp:
            peak = int(np.load(io.BytesIO(resp.read())).argmax())
        counts[name] += peak >= 0
        time.sleep(0.004)


def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    counts = [0, 0]
    stop = time.perf_counter() + T
    threads = [threading.Thread(target=client, args=(server.server_port, i, stop, counts)) for i in range(2)]
    for th in threads:
        th.start()
    for th in threads:
        th.join()
    server.shutdown()
    server.server_close()
    print("jobs done:", all(counts), "kept", len(RESULTS) <= KEEP)


main()
