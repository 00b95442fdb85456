"""PyTorch's tensors: blocks of its CPU allocator, shared and mapped memory, and accelerators."""

from tlmem.recorder.bound import STEADY, core
from tlmem.recorder.sources import Source

globals()["__builtins__"] = STEADY  # of the functions below


class Torch(Source):
    """PyTorch's allocators, seen at once if torch has been imported, else when it is.

    The note ``torch.hook`` of the recording says how they are seen, or why they are not. Libraries
    that the program loads later are looked at, too.
    """

    def install(self) -> None:
        core.lib.tlm_torch_install()
        core.lib.tlm_source_await(core.lib.TLM_SOURCE_TORCH, 1)

    def end(self) -> None:
        core.lib.tlm_torch_look_at_modes()

    def remove(self) -> None:
        core.lib.tlm_source_await(core.lib.TLM_SOURCE_TORCH, 0)
        core.lib.tlm_torch_uninstall()
