import sys, tempfile, os
import numpy as np
folder = tempfile.TemporaryDirectory()
d = folder.name; sys.path.insert(0, d); sys.dont_write_bytecode = True
for m in range(25):
    open(os.path.join(d, f"dc{m}.py"), "w").write("from dataclasses import dataclass\nfrom collections import namedtuple\n" + "".join(f"@dataclass\nclass D{i}:\n    a: int = 1\n    b: str = 'x'\n    c: float = 0.0\nN{i} = namedtuple('N{i}', 'p q r s')\n" for i in range(60)))
n = 0
for m in range(25):
    n += __import__(f"dc{m}").D3().a
print(n)
