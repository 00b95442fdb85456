"""NumPy's arrays: allocation, resize and free, from the first import of NumPy on."""

from tlmem.recorder.bound import STEADY, core
from tlmem.recorder.sources import Source

globals()["__builtins__"] = STEADY  # of the functions below


class Numpy(Source):
    """NumPy's allocator, replaced at once if NumPy has been imported, else when it is."""

    def install(self) -> None:
        if core.lib.tlm_numpy_install() == core.lib.TLM_UNSUPPORTED:
            core.lib.tlm_source_await(core.lib.TLM_SOURCE_NUMPY, 1)

    def remove(self) -> None:
        core.lib.tlm_source_await(core.lib.TLM_SOURCE_NUMPY, 0)
        core.lib.tlm_numpy_uninstall()
