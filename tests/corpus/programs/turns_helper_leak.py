"""A helper serves a warm-up, which gives everything back, and then a service that keeps every answer."""
import time, numpy as np

KEPT = []
def zeros(n): return np.zeros(n)
def warm():
    parts = [zeros(500) for _ in range(300) if not time.sleep(0.0004)]
    return len(parts)
def serve():
    for i in range(4000):
        a = zeros(500); b = zeros(500)
        KEPT.append(a); time.sleep(0.0004)
warm()
serve()
