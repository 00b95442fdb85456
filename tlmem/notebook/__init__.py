"""IPython and Jupyter: ``%load_ext tlmem``, then ``%%tlmem`` records a cell and shows what it left.

In: the text of a cell. Out: what the cell itself gives, and a report below it.
May import: errors, units, analysis, report, recorder.
Third-party: IPython.

Reading order: ``magic`` (the cell magic), ``page`` (what is shown below the cell).
"""

from __future__ import annotations

from typing import Any

__all__ = ["load_ipython_extension"]


def load_ipython_extension(shell: Any) -> None:
    """Gives a shell the magic; called by ``%load_ext tlmem``."""
    from tlmem.notebook.magic import TlmemMagics

    shell.register_magics(TlmemMagics)
