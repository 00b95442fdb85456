import doctest
import time
import numpy as np

kept = []
parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(verbose=False)
for number in range(200):
    text = f">>> kept.append(np.full(4_000, {number}.0))\n"
    test = parser.get_doctest(text, {"np": np, "kept": kept}, f"case{number}", None, 0)
    runner.run(test)
    time.sleep(0.012)
