"""A library in C that only calls ``malloc`` and ``free``: the most one can ask of a heap profiler.

Words: size, path of the library. Prints CPU seconds of the loop as its last line.
"""

import ctypes
import sys
import time

if __name__ == "__main__":
    library = ctypes.CDLL(sys.argv[2])
    library.storm.argtypes = [ctypes.c_long]
    time.sleep(0.1)  # a recorder looks for libraries that are not imported now and then
    library.storm(1000)
    began = time.process_time()
    library.storm(int(60_000_000 * float(sys.argv[1])))
    print(time.process_time() - began)
