"""Who this process is among many: its host, its rank, the name that its worker has.

Covers: the environment variables of the usual launchers, multiprocessing's names, PyTorch's process
group while there is one; names of files made from them.
Does not cover: what reports make of it (``tlmem.recording.identity``).
"""

import os
import re
from os import getpid, uname
from typing import Any

from tlmem.recorder.bound import STEADY, core

globals()["__builtins__"] = STEADY  # of the functions below

VARIABLES = {
    "rank": ("RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"),
    "local_rank": (
        *("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "PMI_LOCAL_RANK"),
        "SLURM_LOCALID",
    ),
    "world_size": ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"),
    "worker": ("PYTEST_XDIST_WORKER", "DASK_WORKER_NAME", "RAY_WORKER_ID"),
    "job": ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "RAY_JOB_ID"),
}
"""By note: where it is looked for, the first that is set counts."""
NUMBERS = ("rank", "local_rank", "world_size")
LONGEST = 200


def identity() -> dict[str, str]:
    """The notes ``host``, ``rank``, ``local_rank``, ``world_size``, ``worker``, ``job``.

    The environment is that of the C library: it has what the program put into ``os.environ``.
    """
    found = {"host": uname().nodename}
    for note, names in VARIABLES.items():
        for name in names:
            text = _environment(name)
            if text and len(text) <= LONGEST and (note not in NUMBERS or text.isdecimal()):
                found[note] = text
                break
    return found


def identity_within(modules: dict[str, Any]) -> dict[str, str]:
    """What the program itself knows: PyTorch's process group, while there is one, and the name of
    a process of multiprocessing, where no launcher has given it another one.

    Args:
        modules: ``sys.modules`` of the program.
    """
    found = {}
    try:
        process: Any = modules.get("multiprocessing.process")
        if process is not None and process.parent_process() is not None:
            found["worker"] = str(process.current_process().name)[:LONGEST]
        distributed: Any = modules.get("torch.distributed")
        if distributed is not None and distributed.is_initialized():
            found["rank"] = str(int(distributed.get_rank()))
            found["world_size"] = str(int(distributed.get_world_size()))
    except Exception:  # the program may have put anything in their place
        return found
    return found


def expand(pattern: str) -> str:
    """The name of a file with who this process is in it: ``run/%h.%r.%p.tlm``.

    ``%h`` is the host, ``%r`` the rank or ``none``, ``%p`` the process id, ``%%`` a percent sign.
    The folder of a pattern that has any of them is created.

    Raises:
        ValueError: another letter stands behind a percent sign.
        OSError: the folder cannot be created.
    """
    if "%" not in pattern:
        return pattern
    core.load()
    known = identity()
    texts = {
        "%h": known["host"],
        "%r": known.get("rank", "none"),
        "%p": str(getpid()),
        "%%": "%",
    }

    def text_of(found: "re.Match[str]") -> str:
        if found[0] not in texts:
            raise ValueError(
                f"'{found[0]}' in '{pattern}' stands for nothing; %h is the host, %r the rank, %p "
                "the process id, %% a percent sign"
            )
        return texts[found[0]]

    path = re.sub("%.?", text_of, pattern, flags=re.DOTALL)
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    return path


def _environment(name: str) -> str:
    text = core.lib.tlm_environment(name.encode())
    return "" if text == core.ffi.NULL else core.ffi.string(text).decode("utf-8", "replace")
