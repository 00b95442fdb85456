"""Which frame of a stack is blamed: the innermost one that is the user's.

A frame is the user's when its file is the script, or lies outside the standard library,
site-packages and tlmem. An installed package that is the program itself, run by its console script
or by ``-m``, comes next: its innermost frame, where no other code of the user's is in the stack.
Where neither is, the innermost frame of all is blamed. A class of the user's that overrides how a
library dispatches operations, and leaves them to the library, stands in the way of all of them: its
caller is blamed.

Covers: the blamed site of each site, which files are the user's.
Does not cover: groups of sites with the same blamed line (``analysis.places``).
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

import numpy as np

from tlmem.events import CPLUSPLUS
from tlmem.recording.format.symbols import Names

_LIBRARY_PATH = re.compile(r"[/\\](site-packages|dist-packages|lib[/\\]python3\.\d+)[/\\]", re.I)

_GENERATED = re.compile(r"[/\\]torchinductor_[^/\\]*[/\\]|^<eval_with_key>")
"""Code that PyTorch's compiler writes."""
DISPATCHERS = ("__torch_function__", "__torch_dispatch__", "__array_function__", "__array_ufunc__")
"""Methods through which all operations with objects of a class go."""


def is_users(file: str, notes: dict[str, str]) -> bool:
    """Whether code in this file is the user's: not a library's, the interpreter's or tlmem's."""
    if not file or file == CPLUSPLUS or file.startswith(("<frozen ", "<__array_function__")):
        return False
    if _GENERATED.search(file):
        return False
    if file == notes.get("script") or is_programs(file, notes):
        return True
    known = False
    for key in ("python.stdlib", "python.sites", "tlmem.path"):
        for folder in notes.get(key, "").split(os.pathsep):
            known = known or bool(folder)
            if folder and file.startswith((folder.rstrip("/\\") + "/", folder + "\\")):
                return False
    return known or not _LIBRARY_PATH.search(file)


def is_programs(file: str, notes: dict[str, str]) -> bool:
    """Whether a file is of the installed package that is the program, or the script it has."""
    package = notes.get("program", "")
    return bool(package) and (
        file in (package, notes.get("script")) or file.startswith((f"{package}/", f"{package}\\"))
    )


@dataclass(frozen=True)
class SiteTable:
    """Sites in rising order, as columns. Row 0 is site 0, row 1 is site 1."""

    site: np.ndarray
    parent: np.ndarray
    code: np.ndarray
    line: np.ndarray
    depth: np.ndarray
    blamed: np.ndarray

    def rows_of(self, sites: np.ndarray) -> np.ndarray:
        """The row of each site; 0 (no stack) for a site that has no name in the file."""
        if len(self.site) == int(self.site[-1]) + 1:
            return np.where(sites < len(self.site), sites, 0)
        rows = np.searchsorted(self.site, sites).clip(max=len(self.site) - 1)
        return np.where(self.site[rows] == sites, rows, 0)


def site_table(names: Names) -> SiteTable:
    """All sites with their depth and the site that is to blame for what happens there.

    Blamed is the innermost frame that is the user's; where none is, the innermost frame of all.
    """
    users = {code: is_users(path.file, names.notes) for code, path in names.codes.items()}
    programs = {code for code, path in names.codes.items() if is_programs(path.file, names.notes)}
    dispatchers = {
        code: method
        for code, path in names.codes.items()
        if (method := path.function.rpartition(".")[2]) in DISPATCHERS
    }
    depth, users_site = {0: 0, 1: 0}, {0: 0, 1: 0}
    ordered = sorted(names.sites)
    for site in ordered:
        parent, code, _ = names.sites[site]
        depth[site] = depth.get(parent, 0) + 1
        if users.get(code, False):
            outer = users_site.get(parent, 0) if code in programs else 0
            users_site[site] = outer if outer and names.sites[outer][1] not in programs else site
            continue
        blamed = users_site.get(parent, 0)
        if code in dispatchers and blamed == parent:
            outer, caller, _ = names.sites.get(parent, (0, 0, 0))
            if dispatchers.get(caller) == dispatchers[code]:
                blamed = users_site.get(outer, 0) or blamed
        users_site[site] = blamed
    rows = [names.sites[site] for site in ordered]
    columns = np.array([(0, 0, 0), (0, 0, 0), *rows], np.int64)
    return SiteTable(
        np.array([0, 1, *ordered], np.int64),
        columns[:, 0],
        columns[:, 1],
        columns[:, 2],
        np.array([depth[site] for site in (0, 1, *ordered)], np.int32),
        np.array([users_site[site] or site for site in (0, 1, *ordered)], np.int64),
    )
