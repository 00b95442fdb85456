"""A recording is made, then read and analysed again and again: the reader keeps nothing."""

import os
import subprocess
import sys
import tempfile

import tlmem
from tlmem.analysis import analyse

OUTCOME = "stable"
READS = 40
PROGRAM = "import numpy\nfor size in range(2000):\n    numpy.ones(size)\n"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.tlm")
        command = [sys.executable, "-m", "tlmem", "record", "-q", "-o", path, "-c", PROGRAM]
        subprocess.run(command, check=True)
        for number in range(READS):
            tlmem.mark("read", number)
            outcome = analyse(tlmem.read(path)).verdict.outcome
    print(f"{READS} times {outcome}")


if __name__ == "__main__":
    main()
