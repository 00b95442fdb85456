import sys
import time
import types
import numpy as np

SRC = """
import numpy as np
TABLES = [np.arange(62_500) * (k + 1) for k in range(20)]
def look(k, i):
    return int(TABLES[k % 20][i % 62_500])
"""


def load_module():
    m = types.ModuleType("tables")
    exec(compile(SRC, "tables.py", "exec"), m.__dict__)
    sys.modules["tables"] = m


t0 = time.monotonic()
s = 0
i = 0
while (el := time.monotonic() - t0) < 3.6:
    if el > 1.8:
        if "tables" not in sys.modules:
            load_module()
        import tables
        s += tables.look(i, i * 31)
    s += int(np.arange(500).sum())
    i += 1
    time.sleep(0.002)
print(s > 0)
