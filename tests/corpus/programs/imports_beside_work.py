import sys, tempfile, threading, time
import numpy as np
folder = tempfile.TemporaryDirectory()
sys.pycache_prefix = folder.name; sys.dont_write_bytecode = True
def load():
    import scipy.stats, scipy.optimize, pandas
t = threading.Thread(target=load); t.start()
a = np.random.default_rng(0).standard_normal((200, 200))
end = time.time() + 3.0
n = 0
while time.time() < end or t.is_alive():
    b = a @ a; a = b / np.abs(b).max(); n += 1
    time.sleep(0.002)
t.join(); print(n > 0)
