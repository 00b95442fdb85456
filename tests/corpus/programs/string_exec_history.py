import sys
import time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0


class Calculator:
    def __init__(self):
        self.names = {"np": np, "x": np.linspace(0, 6, 700)}
        self.log = []

    def enter(self, text):
        value = eval(text, self.names)
        self.names["ans"] = value
        self.log.append((text, value))
        return value


c = Calculator()
forms = ["np.sin(x)", "np.cos(x) * 2", "x ** 2 + 1", "np.sqrt(np.abs(ans))", "ans - x"]
n = int(T * 90)
for i in range(n):
    v = c.enter(forms[i % 5])
    time.sleep(0.010)
print(n, round(float(v.sum()), 4))
