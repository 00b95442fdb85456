from tlmem.cli.record import main

__all__ = ["main"]
