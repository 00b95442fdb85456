import sys, tempfile, os, time
import numpy as np
folder = tempfile.TemporaryDirectory()
d = folder.name; sys.path.insert(0, d); sys.dont_write_bytecode = True
for m in range(14):
    open(os.path.join(d, f"bigm{m}.py"), "w").write("\n".join(f"def f{i}(a, b=1, *c, **d):\n    'doc {i}'\n    if a > {i}:\n        return [a, b, {i}]\n    return dict(a=a, b=b)" for i in range(3000)))
t = 0
for m in range(14):
    t += __import__(f"bigm{m}").f3(1)["a"]
print(t)
