import sys
import time
import linecache

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
CELLS = [
    "import numpy as np\nimport math\n",
    "data = np.linspace(0, 1, 30000 + 1000 * (k % 7))\n",
    "y = np.sin(data * k)\nz = y ** 2\n",
    "hist, edges = np.histogram(z, bins=50)\n",
    "summary = {'k': k, 'max': float(z.max()), 'hist': hist}\n",
]
ns = {}
for k in range(int(T * 25)):
    ns["k"] = k
    for i, c in enumerate(CELLS):
        fn = "<ipython-input-%d-%012x>" % (i, 0xabc000 + i)
        linecache.cache[fn] = (len(c), None, c.splitlines(True), fn)
        exec(compile(c, fn, "exec"), ns)
        time.sleep(0.007)
print(ns["summary"]["k"], round(ns["summary"]["max"], 4))
