import sys, tempfile, os
import numpy as np
folder = tempfile.TemporaryDirectory()
d = folder.name; sys.path.insert(0, d); sys.dont_write_bytecode = True
for m in range(40):
    open(os.path.join(d, f"tab{m}.py"), "w").write("T = {" + ",".join(f"'{m}_{i}': ({i}, {i*2}, 'v{i}')" for i in range(6000)) + "}\n")
s = 0
for m in range(40):
    s += len(__import__(f"tab{m}").T)
print(s)
