"""What one training step of a model saves for its gradients, and the most it needs at once.

Prints JSON, bytes by library. *Saved* is what is held for the rules when forward is done, each
storage once: ``tape.stats()`` here, PyTorch's hook of saved tensors there; ``saved alone`` leaves
out weights and the batch, which are alive anyway. *Peak* is the most of tensors' memory at any time
of the step above what was there before: the runtime's events here, those of PyTorch's profiler
there.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from autograd_models import LIBRARIES, MODELS, Model, torch

import tlmem
from tlmem.runtime.core import ffi, lib


def kept(model: Model) -> list[Any]:
    """What is alive with or without a tape."""
    return [*model.weights, *model.data]


def saved_by_tlmem(model: Model) -> dict[str, int]:
    """What the tape holds, after forward."""
    loss = model.loss()
    found = tlmem.tape().stats()
    alive = sum(each.nbytes for each in kept(model) if is_saved(each))
    loss.backward()
    return {"saved": found.saved_bytes, "saved alone": found.saved_bytes - alive}


def is_saved(tensor: Any) -> bool:
    """Whether a tape holds it for a rule."""
    return bool(lib.tlm_object_saved(tensor.handle, ffi.new("tlm_holder *")))


def peak_of_tlmem(model: Model) -> int:
    """Of a recording of one step."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "step.tlm"
        with tlmem.Recorder(path):
            model.step()
        return int(tlmem.read(path).totals.peak_bytes)


def saved_by_torch(model: Model) -> dict[str, int]:
    """Storages that are packed for backward, during forward."""
    found: dict[int, int] = {}

    def pack(tensor: Any) -> Any:
        storage = tensor.untyped_storage()
        found[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = model.loss()
    alive = {tensor.untyped_storage().data_ptr() for tensor in kept(model)}
    alone = sum(size for place, size in found.items() if place not in alive)
    loss.backward()
    return {"saved": sum(found.values()), "saved alone": alone}


def peak_of_torch(model: Model) -> int:
    """Likewise, of what its allocator of the CPU was asked for."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, profile_memory=True) as profiler:
        model.step()
    events = profiler.profiler.kineto_results.events()
    changes = [event for event in events if event.name() == "[memory]"]
    current = peak = 0
    for event in sorted(changes, key=lambda event: event.start_ns()):
        current += event.nbytes()
        peak = max(peak, current)
    return peak


def measure(name: str) -> dict[str, dict[str, int]]:
    """Of each library."""
    found = {}
    for library in LIBRARIES:
        model = MODELS[name](library)
        for _ in range(2):
            model.step()
        ours = library.name == "tlmem"
        peak = peak_of_tlmem(model) if ours else peak_of_torch(model)
        for weight in model.weights:
            weight.grad = None
        saved = saved_by_tlmem(model) if ours else saved_by_torch(model)
        found[library.name] = {**saved, "peak": peak}
    return found


if __name__ == "__main__":
    if torch:
        torch.set_num_threads(1)
    print(json.dumps({name: measure(name) for name in sys.argv[1:]}))
