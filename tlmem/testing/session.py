"""pytest's hooks while ``--tlmem`` is on: record each test, hold it to its limits, sum up.

Each process records for itself, so that workers of pytest-xdist each have their own files; what a
test took travels to the summary in its report's properties, which JUnit XML shows too.

Covers: when recordings begin and end, which are kept. Does not cover: numbers (``measuring``).
"""

from __future__ import annotations

import gc
import re
from collections.abc import Generator
from pathlib import Path

import pytest

from tlmem.gate import suppressions
from tlmem.gate.budgets import BadOptions
from tlmem.recording import family
from tlmem.testing.limits import (
    NOT_RECORDED,
    Limits,
    Loop,
    exceeded,
    limits_of,
    message,
    parse_loop,
)
from tlmem.testing.measuring import RUN, measured
from tlmem.units import format_bytes

PEAK, LEFT, RESIDENT = "tlmem_peak_bytes", "tlmem_left_bytes", "tlmem_resident_bytes"
"""Properties of a test's report."""
LONGEST_NAME = 150


class MemoryOfTests:
    """The hooks, registered when the plugin is switched on."""

    def __init__(self, config: pytest.Config) -> None:
        from tlmem.recorder import session
        from tlmem.recorder.failure import CannotRecord

        try:
            session.require_native()
        except CannotRecord as error:
            raise pytest.UsageError(f"--tlmem: {error}") from None
        if session.active is not None:
            raise pytest.UsageError(
                f"--tlmem records each test, and this process is recorded to "
                f"'{session.active.shown_path}' already; use one of both."
            )
        self.config = config
        self.loop = parse_loop(config.getoption("--tlmem-loop") or config.getini("tlmem_loop"))
        self.keep = bool(config.getoption("--tlmem-keep"))
        self.folder = config.rootpath / (
            config.getoption("--tlmem-dir") or config.getini("tlmem_dir") or ".tlmem"
        )
        try:
            self.suppressions = suppressions.read(config.getini("tlmem_suppressions"))
        except BadOptions as error:
            raise pytest.UsageError(str(error)) from None
        self.taken: dict[str, dict[str, float]] = {}
        self.limits: dict[str, Limits] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Refuses markers that are not understood before the first test runs."""
        self.limits = {item.nodeid: limits_of(item) for item in items}

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        """Records one test; fails it when it passed and took more than it may."""
        if item.get_closest_marker(NOT_RECORDED) is not None:
            return (yield)
        path = self._path(item)
        loop = self.loop if isinstance(item, pytest.Function) else Loop()
        for _ in range(loop.warmup):
            item.runtest()
        recorder = _start(path)
        try:
            for number in range(loop.runs - 1):
                _between(number)
                item.runtest()
            if loop.runs > 1:
                _between(loop.runs - 1)
            result = yield
            if loop.runs > 1:
                _between(loop.runs)
            gc.collect()
        except BaseException:
            recorder.stop()
            self._drop(path)
            raise
        recorder.stop()
        took = measured(path, self.suppressions)
        item.user_properties += [
            (PEAK, took.peak),
            (LEFT, round(took.left)),
            (RESIDENT, round(took.resident)),
        ]
        found = exceeded(took, self.limits.get(item.nodeid) or limits_of(item))
        if not found:
            if not self.keep:
                self._drop(path)
            return result
        pytest.fail(message(found, path), pytrace=False)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remembers what a test took, also one that a worker ran."""
        if report.when == "call":
            took = {name: value for name, value in report.user_properties if name in _SHOWN}
            if took:
                self.taken[report.nodeid] = {name: float(str(took[name])) for name in took}

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """The tests that took most."""
        most = self.config.getoption("--tlmem-most")
        if not self.taken or most <= 0:
            return
        order = sorted(self.taken, key=lambda test: -self.taken[test].get(PEAK, 0.0))
        terminalreporter.section(f"tlmem: memory of {len(order)} tests")
        terminalreporter.write_line(f"{'peak':>9} {'left':>9} {'resident':>10}  test")
        for test in order[:most]:
            took = self.taken[test]
            resident = format_bytes(took.get(RESIDENT, 0.0))
            resident = resident if resident.startswith("-") else f"+{resident}"
            terminalreporter.write_line(
                f"{format_bytes(took.get(PEAK, 0.0)):>9} {format_bytes(took.get(LEFT, 0.0)):>9} "
                f"{resident:>10}  {test}"
            )

    def _path(self, item: pytest.Item) -> Path:
        """Where a test is recorded: a name that no other test has at the same time."""
        if not self.folder.is_dir():
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                (self.folder / ".gitignore").write_text("*\n", encoding="utf-8")
            except OSError as error:
                reason = f"--tlmem: {self.folder} cannot be made ({error.strerror})"
                pytest.exit(f"{reason}; give --tlmem-dir FOLDER.", pytest.ExitCode.USAGE_ERROR)
        name = re.sub(r"[^\w.\-\[\]]+", "-", item.nodeid.replace("::", "."))[-LONGEST_NAME:]
        worker = getattr(item.config, "workerinput", {}).get("workerid", "")
        return self.folder / f"{name.strip('-.')}{f'.{worker}' if worker else ''}.tlm"

    def _drop(self, path: Path) -> None:
        """Removes a recording, and those of processes that the test started."""
        for file in (*family.find(path), path):
            file.unlink(missing_ok=True)


_SHOWN = (PEAK, LEFT, RESIDENT)


def _start(path: Path):  # type: ignore[no-untyped-def]
    """A recording of this process, under way."""
    from tlmem.recorder.api import Recorder

    gc.collect()
    return Recorder(path, force=True).start()


def _between(number: int) -> None:
    """Before each run of a loop, and after the last: nothing of a run is left by accident."""
    from tlmem.recorder import session

    gc.collect()
    if session.active is not None:
        session.active.sample()
        session.active.mark(RUN, number)
