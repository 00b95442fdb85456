"""Runs cells the way a notebook does: compile, eval the last expression, remember it in Out."""
import ast
import sys
import time
import hashlib

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0

SETUP = "import numpy as np\nrng = np.random.default_rng(0)\nX = rng.random((60, 25))\n"
CELLS = [
    "# normalise\n(X - X.mean(axis=0)) / X.std(axis=0)\n",
    "# covariance\nX.T @ X\n",
    "# walk\nnp.cumsum(rng.standard_normal(900))\n",
]

ns = {"__name__": "__main__", "Out": {}}


def run_cell(number, source):
    tree = ast.parse(source)
    name = "<ipython-input-%d-%s>" % (number, hashlib.md5(source.encode()).hexdigest()[:12])
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), ns)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), name, "eval"), ns)
        if value is not None:
            ns["Out"][number] = value
            ns["_"] = value


run_cell(1, SETUP)
for n in range(2, int(T * 60)):
    run_cell(n, CELLS[n % 3])
    time.sleep(0.015)
print("cells", n)
