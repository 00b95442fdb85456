"""Calls a function as soon as a named module has been loaded, leaving nothing to be seen.

``sys.meta_path``, loaders and specs stay as they are in a plain run. Only ``exec_module`` of the
two file loaders is wrapped, and only while a name is waited for. The wrapper carries the file name
of the import system's own code: tracebacks and warnings leave it out as they leave out the rest.

Does not cover: modules that are loaded already; ask ``sys.modules`` first.
"""

from collections.abc import Callable
from importlib.machinery import ExtensionFileLoader, SourceFileLoader
from typing import Any

_LOADERS: tuple[Any, Any] = (ExtensionFileLoader, SourceFileLoader)
_waiting: dict[str, Callable[[], None]] = {}
_originals: dict[Any, Any] = {}


def when_loaded(name: str, call: Callable[[], None]) -> None:
    """Calls ``call`` once, right after the module ``name`` has been executed for the first time."""
    _waiting[name] = call
    if not _originals:
        for loader in _LOADERS:
            _originals[loader] = loader.__dict__.get("exec_module")
            loader.exec_module = _wrap(loader.exec_module)


def forget(name: str) -> None:
    """No longer waits for ``name``. With the last name the loaders are as they were."""
    _waiting.pop(name, None)
    if not _waiting:
        forget_all()


def forget_all() -> None:
    """Waits for nothing any more; the loaders are as they were."""
    _waiting.clear()
    for loader, original in _originals.items():
        if original is None:
            del loader.exec_module
        else:
            loader.exec_module = original
    _originals.clear()


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
