"""Four epochs, each called from a line of its own; losses wait in a list until the epoch returns."""
import time, numpy as np

def epoch(n):
    losses = []
    for i in range(n):
        losses.append(np.full(200, i)); time.sleep(0.0005)
    return float(np.mean(losses))
history = []
history.append(epoch(900))
history.append(epoch(900))
history.append(epoch(900))
history.append(epoch(900))
print(history)
