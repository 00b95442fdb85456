"""Classes of PyTorch's leaks, from recordings of real programs and of their mended twins."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from support.programs import recorded

from tlmem.analysis import analyse
from tlmem.analysis.leaks.cures import FIXES
from tlmem.analysis.model import Analysis, Finding
from tlmem.recording.reader import read

pytest.importorskip("torch", reason="needs PyTorch: pip install tlmem[torch]")

PROGRAMS = Path(__file__).resolve().parents[3] / "scenarios" / "programs"
PATHS = {path.stem: path for path in PROGRAMS.glob("*/torch_*.py")}
LEAKS = {
    "torch_kept_losses": ("kept-graph", "list 'losses' (local variable of evaluate()"),
    "torch_kept_nodes": ("kept-graph", "list 'history'"),
    "torch_hidden_state": ("graph-chain-grows", "that of local variable 'state' of main()"),
    "torch_retained_graph": ("retained-graph", "it is run with retain_graph=True at"),
    "torch_gradients_never_cleared": ("retained-graph", "it is run with create_graph=True at"),
    "torch_hook_keeps": ("hook-keeps", "(a forward hook of 'features' (Sequential, local variable"),
    "torch_pack_hook": (
        "hook-cycle",
        "nodes hold attribute 'tensor' of Packed (a Packed)",
    ),
    "torch_context_cycle": ("hook-cycle", "Autograd nodes hold dict 'results' of ScaledBackward"),
    "torch_optimizer_outlives": ("optimizer-outlives-params", "of optimizer 'shared' (Adam, local"),
    "torch_modules_grow": ("modules-grow", "parameters in 'adapters' of 'model' (Adapted, local"),
    "torch_loader_batches": ("shared-memory-kept", "are in shared memory or mapped files"),
    "torch_replay_views": ("view-pins-base", "deque 'states' of Replay"),
    "torch_kept_contexts": ("kept-graph", "900 contexts GateBackward, and about as many items in"),
    "torch_sparse_kept": ("cache-only-grows", "list 'gradients' (local variable of main()"),
    "torch_kv_cache": ("cache-only-grows", "tensors allocated at"),
}
"""Programs with the class of the line that leaks, and a part of what is said."""
MARKER = "# leaks here"
ATTEMPTS = 3
TWINS = ("torch_kept_losses", "torch_hidden_state", "torch_pack_hook")
"""Mended twins that are run here; the others, and healthy programs, are in tests of scenarios."""


@dataclass(frozen=True)
class Run:
    """A program that was recorded and judged."""

    name: str
    analysis: Analysis

    @property
    def line(self) -> int:
        """The line that leaks."""
        lines = PATHS[self.name].read_text(encoding="utf-8").splitlines()
        return next(n for n, line in enumerate(lines, 1) if line.endswith(MARKER))

    @property
    def classes(self) -> list[Finding]:
        """What is said of why something leaks."""
        return [finding for finding in self.analysis.findings if finding.kind in FIXES]


def run(name: str, folder: Path, *words: str) -> Run:
    """Records a program and judges it."""
    path = folder / f"{name}.tlm"
    arguments = [str(PATHS[name]), *words]
    done = recorded(arguments, folder, options=("-q", "--force", "-o", str(path)))
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return Run(name, analyse(read(path)))


@pytest.mark.parametrize("name", LEAKS)
def test_the_line_that_leaks_has_its_class(name: str, tmp_path: Path) -> None:
    """In one of three runs: a class rests on a snapshot that a busy machine may take too early.

    That the line is found, is asked of each.
    """
    kind, text = LEAKS[name]
    said = []
    for _ in range(ATTEMPTS):
        leak = run(name, tmp_path)
        found = [f for f in leak.classes if f.site is not None and f.site.line == leak.line]
        assert leak.analysis.verdict.outcome == "leak", leak.analysis.verdict.sentence
        said.append([(finding.kind, finding.evidence) for finding in found])
        if [each for each, _ in said[-1]] == [kind] and text in said[-1][0][1]:
            break

    assert [each for each, _ in said[-1]] == [kind], said
    assert text in said[-1][0][1]
    assert "tensors allocated at" in said[-1][0][1]


@pytest.mark.parametrize("name", TWINS)
def test_what_is_mended_has_no_class(name: str, tmp_path: Path) -> None:
    mended = run(name, tmp_path, "fixed")

    assert mended.analysis.verdict.outcome == "stable", mended.analysis.verdict.sentence
    assert mended.classes == []
