"""Makes ``python -m tlmem.scenarios.harness.soak`` run the soak."""

import sys

from .command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
