import sys
import time

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
cells = {
    1: "import numpy as np\nresults = []\n",
    2: "params = dict(seed=run, n=200 + run % 9 * 100)\n",
    3: "g = np.random.default_rng(params['seed'])\n"
       "noise = g.standard_normal(params['n'])\n"
       "sim = np.cumsum(noise) + 1.0\n"
       "results.append({'params': params, 'final': sim[-1], 'path': sim})\n",
    4: "mean_final = float(np.mean([r['final'] for r in results[-50:]]))\n",
}
user_ns = {"__name__": "__main__"}


def execute(n, **extra):
    user_ns.update(extra)
    code = compile(cells[n], "<ipython-input-%d-0f3a77c1>" % n, "exec")
    exec(code, user_ns)


execute(1)
for run in range(int(T * 95)):
    for n in (2, 3, 4):
        execute(n, run=run)
    time.sleep(0.0095)
print(run, round(user_ns["mean_final"], 4))
