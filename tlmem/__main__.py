"""``python -m tlmem`` is the command ``tlmem``.

May import: cli.
"""

import sys

# Python puts the current folder first: a module there may have the name of one that we need.
HERE = [] if sys.flags.safe_path else [sys.path.pop(0)]
from tlmem.cli import main  # noqa: E402

sys.path[:0] = HERE

if __name__ == "__main__":
    raise SystemExit(main())
