"""Inference server with a dynamic-batching worker thread, client threads sending bursts, and sessions that expire."""
import queue
import threading
import time
from concurrent.futures import Future
import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(16)
STOP = object()


class Server(threading.Thread):
    def __init__(self, model):
        super().__init__(daemon=True)
        self.model, self.q = model, queue.Queue(maxsize=256)
        self.sessions, self.served = {}, 0

    def run(self):
        torch.set_num_threads(1)
        while True:
            first = self.q.get()
            if first is STOP:
                return
            batch, stop = [first], False
            while len(batch) < 16:
                try:
                    nxt = self.q.get(timeout=0.003)
                except queue.Empty:
                    break
                if nxt is STOP:
                    stop = True
                    break
                batch.append(nxt)
            with torch.inference_mode():
                out = self.model(torch.stack([b[1] for b in batch]))
            self.served += len(batch)
            for (sid, _x, fut), o in zip(batch, out):
                self.sessions[sid] = (self.served, o.clone())
                fut.set_result(o.clone())
            old = [s for s, (t, _) in self.sessions.items() if self.served - t > 600]
            for s in old:
                del self.sessions[s]
            if stop:
                return


def client(server, cid, n, xs, out):
    total = 0.0
    for r in range(n):
        futs = []
        for j in range(1 + (r // 30) % 5):
            f = Future()
            server.q.put((cid * 100000 + r * 10 + j, xs[(r + j) % len(xs)] * (1 + 0.01 * r), f))
            futs.append(f)
        total += sum(f.result(timeout=20).sum().item() for f in futs)
        time.sleep(0.03)
    out[cid] = total


def main():
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 1024)).eval()
    server = Server(model)
    server.start()
    xs, out = torch.randn(32, 256), {}
    clients = [threading.Thread(target=client, args=(server, c, 190, xs, out)) for c in range(3)]
    for c in clients:
        c.start()
    for c in clients:
        c.join()
    server.q.put(STOP)
    server.join(5)
    print("served", server.served, "sessions", len(server.sessions))


if __name__ == "__main__":
    main()
