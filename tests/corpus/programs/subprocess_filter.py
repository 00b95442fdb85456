import subprocess
import sys
import time
import numpy as np

CODE = "import sys; d = sys.stdin.buffer.read(); sys.stdout.buffer.write(d[::-1])"
t0 = time.monotonic()
n = 0
ans = None
while time.monotonic() - t0 < 3.0:
    a = np.arange(40_000, dtype=np.uint8) + n % 5
    r = subprocess.run([sys.executable, "-S", "-c", CODE], input=a.tobytes(), stdout=subprocess.PIPE, check=True)
    ans = np.frombuffer(r.stdout, np.uint8)
    n += 1
print(ans.size)
