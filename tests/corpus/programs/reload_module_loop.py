import importlib, time, sys, tempfile, os
import numpy as np
folder = tempfile.TemporaryDirectory()
d = folder.name; sys.path.insert(0, d); sys.dont_write_bytecode = True
open(os.path.join(d, "cfgmod.py"), "w").write("\n".join(f"V{i} = list(range(50))\ndef g{i}(): return V{i}" for i in range(1500)))
import cfgmod
end = time.time() + 3
while time.time() < end:
    importlib.reload(cfgmod); np.ones(500).sum()
print(len(cfgmod.V3))
