# retry queue by priority: poisoned messages are re-queued with a worse priority and never come up again
import heapq, time
import numpy as np
rng = np.random.default_rng(30)
heap = []; seq = 0; t0 = time.monotonic(); done = 0
def receive():
    return rng.integers(0, 255, 80_000, dtype=np.uint8)  # LEAK
for i in range(800):
    for _ in range(2):
        heapq.heappush(heap, (0, seq, receive())); seq += 1
    for _ in range(2):
        prio, n, msg = heapq.heappop(heap)
        if n % 25 == 0:
            heapq.heappush(heap, (prio + 1, n, msg))
            continue
        done += int(msg.sum() > 0)
        if heap and heap[0][0] > 0: break
    time.sleep(max(0, t0 + i * 0.01 - time.monotonic()))
print(done, len(heap))
