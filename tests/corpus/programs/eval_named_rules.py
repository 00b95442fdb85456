import time
import numpy as np

history = {}


def apply(rule, number):
    # each rule has a name, so that tracebacks tell which one failed
    code = compile(rule, f"<rule {number}>", "eval")
    return eval(code, {"np": np, "n": number})


t0 = time.monotonic()
number = 0
while time.monotonic() - t0 < 3.5:
    history[number] = apply("np.sqrt(np.arange(8_000) + n)", number)
    number += 1
    time.sleep(0.006)
