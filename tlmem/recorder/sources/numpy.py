"""NumPy's arrays: allocation, resize and free, from the first import of NumPy on."""

import sys

from tlmem.recorder.sources import Source, imports

MODULES = ("numpy._core._multiarray_umath", "numpy.core._multiarray_umath")
"""The extension module that has NumPy's allocator, in NumPy 2 and in NumPy 1."""


class Numpy(Source):
    """NumPy's allocator, replaced at once if NumPy has been imported, else when it is."""

    def install(self) -> None:
        if any(name in sys.modules for name in MODULES):
            _replace_allocator()
        for name in MODULES:
            imports.when_loaded(name, _when_imported)

    def remove(self) -> None:
        from tlmem._native import lib

        _stop_waiting()
        lib.tlm_numpy_uninstall()


def _stop_waiting() -> None:
    for name in MODULES:
        imports.forget(name)


def _when_imported() -> None:
    _stop_waiting()
    _replace_allocator()


def _replace_allocator() -> None:
    from tlmem._native import lib

    lib.tlm_numpy_install()
