"""Calls a function as soon as an extension module has been loaded, leaving nothing to be seen.

``sys.meta_path``, loaders and specs stay as they are in a plain run. Only ``exec_module`` of the
loader of extension modules is wrapped, and only while a name is waited for. The wrapper carries the
file name of the import system's own code: tracebacks and warnings leave it out as they leave out
the rest.

Does not cover: modules written in Python; modules that are loaded already (ask ``sys.modules``).
"""

from collections.abc import Callable
from importlib.machinery import ExtensionFileLoader, SourceFileLoader
from typing import Any

_waiting: dict[str, Callable[[], None]] = {}
_LOADER: Any = ExtensionFileLoader
_original: Any = None


def when_loaded(name: str, call: Callable[[], None]) -> None:
    """Calls ``call`` once, right after the module ``name`` has been executed for the first time."""
    global _original
    _waiting[name] = call
    if _original is None:
        _original = _LOADER.exec_module
        _LOADER.exec_module = _wrap(_original)


def forget(name: str) -> None:
    """No longer waits for ``name``. With the last name the loader is as it was."""
    _waiting.pop(name, None)
    if not _waiting:
        forget_all()


def forget_all() -> None:
    """Waits for nothing any more; the loader is as it was."""
    global _original
    _waiting.clear()
    if _original is not None:
        _LOADER.exec_module = _original
        _original = None


def _wrap(execute: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    def exec_module(self: Any, module: Any) -> None:
        execute(self, module)
        call = _waiting.get(module.__name__)
        if call is not None:
            forget(module.__name__)
            call()

    own = exec_module.__code__
    exec_module.__code__ = own.replace(co_filename=SourceFileLoader.path_stats.__code__.co_filename)
    return exec_module
