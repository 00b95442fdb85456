import time
import numpy as np

Out = {}
ns = {"np": np, "Out": Out}


def run_cell(number):
    source = f"Out[{number}] = np.ones(5_000)"
    exec(compile(source, f"<ipython-input-{number}-f00d>", "exec"), ns)


for number in range(300):
    run_cell(number)
    time.sleep(0.008)
