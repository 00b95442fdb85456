"""What a call stack was doing: building a model, a forward pass, a backward pass, a step.

Covers: the phase of every call site, from the innermost frame of PyTorch that is known; threads of
the autograd engine. Does not cover: what follows from it for a block (``roles``).

The frames are those of PyTorch 2.x. A stack without any of them is the program's own code, unless
it is in a function named ``forward``, as where ``model.forward(x)`` is called without hooks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tlmem.events import CPLUSPLUS, ENGINE, WORKSPACE

Ints = NDArray[np.int64]
Phases = NDArray[np.int8]


class Phase(IntEnum):
    """What the program was doing when it allocated or freed a block."""

    NEVER = -1
    """Of a free: the block was not freed."""
    USER = 0
    """The program's own code, outside of modules, backward passes and optimizers."""
    INIT = 1
    """A module is made, moved or loaded."""
    COPY = 2
    """``copy.deepcopy`` of tensors that are of no module, or a generator's state."""
    DATA = 3
    """A data loader, with the program's data sets and collate functions."""
    FORWARD = 4
    BACKWARD = 5
    RECOMPUTED = 6
    """A forward pass within a backward pass: checkpointing."""
    OPTIMIZER = 7
    ZERO_GRAD = 8
    SEED = 9
    """The gradient of the root, which ``backward`` makes itself."""
    BUCKETS = 10
    """DistributedDataParallel makes the buffers through which gradients are averaged."""
    CASTS = 11
    """Autocast lets go of the casts of weights that no graph has saved."""
    LIBRARY = 12
    """PyTorch takes memory that it keeps for cuBLAS, in the midst of whatever comes first."""


IN_WORDS = {
    Phase.USER: "in the program's own code",
    Phase.INIT: "while a module was made or loaded",
    Phase.COPY: "in a copy",
    Phase.DATA: "in a data loader",
    Phase.FORWARD: "in forward",
    Phase.BACKWARD: "in backward",
    Phase.RECOMPUTED: "while backward computed forward again",
    Phase.OPTIMIZER: "in the optimizer",
    Phase.ZERO_GRAD: "in zero_grad",
    Phase.SEED: "in backward",
    Phase.BUCKETS: "while buckets for gradients were made",
    Phase.CASTS: "while autocast ended",
    Phase.LIBRARY: "while cuBLAS got its workspace",
}

_MODULE_CALL, _CHECKPOINT, _PARAMETER_COPY, _FORWARD_METHOD = 100, 101, 102, 103
"""Frames that say more than a phase, or whose phase depends on whether backward called them."""
_MOVES = (
    "_apply|to|to_empty|cuda|cpu|xpu|ipu|mtia|half|float|double|bfloat16|type|share_memory|"
    "load_state_dict|_load_from_state_dict"
)
_KNOWN: tuple[tuple[str, str, int], ...] = (
    (r"autograd/graph\.py", r"_engine_run_backward", Phase.BACKWARD),
    (r"autograd/__init__\.py", r"_make_grads", Phase.SEED),
    (r"autograd/__init__\.py", r"backward|grad", Phase.BACKWARD),
    (r"_tensor\.py", r"Tensor\.backward|backward", Phase.BACKWARD),
    (r"nn/modules/module\.py", r"(.*\.)?(_wrapped_call_impl|_call_impl)(\..*)?", _MODULE_CALL),
    (r"nn/modules/module\.py", r"(.*\.)?zero_grad", Phase.ZERO_GRAD),
    (r"nn/modules/module\.py", rf"(.*\.)?({_MOVES})(\..*)?", Phase.INIT),
    (r"nn/init\.py", r".*", Phase.INIT),
    (r"nn/parameter\.py", r"(.*\.)?materialize", Phase.INIT),
    (r"nn/parallel/distributed\.py", r"(.*\.)?(_ddp_init_helper|_pre_forward)", Phase.BUCKETS),
    (r"(ao|quantization)/.*", r"(.*\.)?(__init__|from_float|from_reference)", Phase.INIT),
    (r"nn/.*", r"(.*\.)?(__init__|_?reset_parameters)", Phase.INIT),
    (r"nn/.*", r"(.*\.)?forward", _FORWARD_METHOD),
    (r"nn/parameter\.py", r"(.*\.)?__deepcopy__", _PARAMETER_COPY),
    (r"(_tensor|storage)\.py", r"(.*\.)?__deepcopy__", Phase.COPY),
    (r"random\.py", r"(.*\.)?get_rng_state", Phase.COPY),
    (r"utils/checkpoint\.py", r".*", _CHECKPOINT),
    (r"utils/data/.*", r".*", Phase.DATA),
    (r"amp/autocast_mode\.py", r"(.*\.)?__exit__", Phase.CASTS),
    (r"optim/(lr_scheduler|swa_utils)\.py", r".*", Phase.USER),
    (r"optim/.*", r"(.*\.)?zero_grad", Phase.ZERO_GRAD),
    (r"optim/.*", r".*", Phase.OPTIMIZER),
)
"""File below ``torch/``, function, what its frame says; the first row that fits counts."""
_RULES = tuple((re.compile(file), re.compile(name), meaning) for file, name, meaning in _KNOWN)
_OF_CPLUSPLUS = {ENGINE: Phase.BACKWARD, WORKSPACE: Phase.LIBRARY}
_ENGINE_THREAD = "pt_autograd"
"""How PyTorch names the threads of the engine that serve accelerators."""
_FORWARD, _INIT = ".forward", ".__init__"


@dataclass(frozen=True)
class SitePhases:
    """The phase of each call site, and whether a backward pass is among its callers.

    Both are indexed by the number of the site.
    """

    phase: Phases
    in_backward: NDArray[np.bool_]

    def of(self, sites: Ints) -> tuple[Phases, NDArray[np.bool_]]:
        """The phases of these sites; ``USER`` of a site that the recording does not name."""
        known = np.where((sites >= 0) & (sites < len(self.phase)), sites, 0)
        return self.phase[known], self.in_backward[known]


def site_phases(sites: pd.DataFrame) -> SitePhases:
    """Walks each stack once, callers before those whom they called.

    Args:
        sites: the table ``sites`` of a recording.
    """
    numbers = sites.index.to_numpy(np.int64)
    size = int(numbers.max(initial=0)) + 1
    row_of = np.zeros(size, np.int64)
    row_of[numbers] = np.arange(len(numbers))
    parent = sites["parent"].to_numpy(np.int64)
    parent_row = row_of[np.where((parent >= 0) & (parent < size), parent, 0)]
    own = _meaning_of_frames(sites, parent_row)
    phase = np.zeros(len(numbers), np.int8)
    in_backward = np.zeros(len(numbers), bool)
    depth = sites["depth"].to_numpy(np.int64)
    order = np.argsort(depth, kind="stable")
    starts = np.flatnonzero(np.diff(depth[order], prepend=-1))
    for rows in np.split(order, starts[1:]):
        caller = parent_row[rows]
        mine, before, within = own[rows], phase[caller], in_backward[caller]
        again = np.where(within, Phase.RECOMPUTED, Phase.FORWARD)
        found = np.where(mine == Phase.USER, before, mine)
        found = np.where(mine == _MODULE_CALL, again, found)
        found = np.where(mine == _CHECKPOINT, again, found)
        found = np.where(mine == _PARAMETER_COPY, Phase.INIT, found)
        # Not called by a module: it says something only where nothing else does.
        unknown = (mine == _FORWARD_METHOD) & (before == Phase.USER)
        found = np.where(mine == _FORWARD_METHOD, before, found)
        found = np.where(unknown, Phase.FORWARD, found)
        copied = (mine == Phase.COPY) & (before == Phase.INIT)
        phase[rows] = np.where(copied, before, found)
        in_backward[rows] = within | (mine == Phase.BACKWARD)
    _copies_of_modules(phase, own, sites["blamed"].to_numpy(np.int64))
    by_number = np.zeros(size, np.int8), np.zeros(size, bool)
    by_number[0][numbers], by_number[1][numbers] = phase, in_backward
    return SitePhases(*by_number)


def _copies_of_modules(phase: Phases, own: NDArray[np.int16], blamed: Ints) -> None:
    """What one line copies together with parameters is a module: its buffers are no mere copies."""
    copied = phase == Phase.COPY
    if copied.any():
        modules = blamed[(own == _PARAMETER_COPY) & (blamed > 1)]
        phase[copied & np.isin(blamed, modules)] = Phase.INIT


def _meaning_of_frames(sites: pd.DataFrame, parent_row: Ints) -> NDArray[np.int16]:
    """What each frame says by itself; ``USER`` of one that says nothing."""
    code = sites["code"].to_numpy(np.int64)
    _, first, inverse = np.unique(code, return_index=True, return_inverse=True)
    files = sites["file"].to_numpy(object)[first].tolist()
    functions = sites["function"].to_numpy(object)[first].tolist()
    meaning = np.array(
        [meaning_of_frame(*each) for each in zip(files, functions, strict=True)], np.int16
    )
    # A class whose forward is called by Module.__call__ is a module; its __init__ builds one.
    called = meaning[inverse][parent_row] == _MODULE_CALL
    classes = {
        (files[n], functions[n].removesuffix(_FORWARD))
        for n in np.unique(inverse[called]).tolist()
        if functions[n].endswith(_FORWARD)
    }
    for n, (file, function) in enumerate(zip(files, functions, strict=True)):
        if function.endswith(_INIT) and (file, function.removesuffix(_INIT)) in classes:
            meaning[n] = Phase.INIT
    return meaning[inverse]


def meaning_of_frame(file: str, function: str) -> int:
    """What a frame of PyTorch says by itself; ``USER`` of any other frame."""
    if file == CPLUSPLUS:
        return _OF_CPLUSPLUS.get(function, Phase.USER)
    path = "/" + file.replace("\\", "/")
    _, found, below = path.rpartition("/torch/")
    if not found:
        return _FORWARD_METHOD if function.rpartition(".")[2] == "forward" else Phase.USER
    for of_file, of_function, meaning in _RULES:
        if of_file.fullmatch(below) and of_function.fullmatch(function):
            return meaning
    return Phase.USER


def engine_threads(threads: pd.DataFrame) -> Ints:
    """The threads in which PyTorch runs the backward passes of accelerators."""
    names = threads["name"].astype(str).str.startswith(_ENGINE_THREAD)
    return threads.index.to_numpy(np.int64)[names.to_numpy(bool)]
