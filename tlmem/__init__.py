"""tlmem: who still holds this memory, since when, and should they?

Public names are loaded when first used: importing tlmem imports neither NumPy nor pandas, and the
reading side works where the extension module was not built.
May import: _exports.

PYTEST_DONT_REWRITE: to pytest, so that ``tlmem record -m pytest`` is without its warning that this
package, which has a plugin, was imported before pytest.
"""

from __future__ import annotations

from importlib import import_module

from tlmem._exports import MODULE_OF, MODULES

TYPE_CHECKING = False  # true for type checkers; importing typing would cost more than all the rest
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.1.0"
__all__ = sorted(["__version__", *MODULES, *MODULE_OF])


def __getattr__(name: str) -> Any:
    if name in MODULES:
        return import_module(f"tlmem.{name}")
    if name not in MODULE_OF:
        raise AttributeError(f"module 'tlmem' has no attribute {name!r}")
    value = getattr(import_module(MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
