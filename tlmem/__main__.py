"""``python -m tlmem`` is the command ``tlmem``."""

from tlmem.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
