import time

CELL1 = "import numpy as np\nlog = []\n"
CELL2 = """
x = np.arange(9_000) * 1.5
log.append(x + len(log))
y = x.sum()
"""

ns = {}
exec(CELL1, ns)
t0 = time.monotonic()
code = compile(CELL2, "<cell 2>", "exec")


def run_cell():
    # run like a notebook
    exec(code, ns)


while time.monotonic() - t0 < 3.2:
    run_cell()
    time.sleep(0.004)
