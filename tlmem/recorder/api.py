"""``tlmem.Recorder``, ``mark`` and ``snapshot``: recording and marking from inside a program."""

import os
import sys
from types import TracebackType

from tlmem.recorder import children, session
from tlmem.recorder.failure import CannotRecord
from tlmem.recorder.options import MODE, RSS_INTERVAL_MS, STACK_DEPTH, Options
from tlmem.recorder.session import Session
from tlmem.units import parse_bytes


class Recorder:
    """Records the process between ``start`` and ``stop``, or inside a ``with`` block.

    A recording that is never stopped is sealed when the interpreter exits. One process makes one
    recording at a time. Children record to files of their own, named after this one, see
    ``follow``.

    Args:
        path: the file to write, ``.tlm`` by custom.
        force: replace a file that exists.
        stack_depth: innermost frames kept of a stack, 0 to 1024.
        max_file: keep the file below this by folding its oldest events into exact sums: bytes, or a
            text such as ``"200MB"``; None means no limit.
        rss_interval: milliseconds between samples of resident memory; later a 200th of the run's
            age, up to five times as long; 0 means start and end only.
        mode: who may read and write the file, as ``os.chmod`` has it, whatever the umask.
        follow: ``"fork"`` records forked children and those of multiprocessing, ``"all"`` every
            Python that this process starts meanwhile, ``"none"`` no other process.
        holders: ``"auto"`` takes snapshots of which Python objects hold arrays, ``"off"`` none.

    Raises:
        CannotRecord: by ``start``, when the file cannot be written, a value is out of range, the
            extension module is missing or a recording is running. Nothing has changed then.
        ValueError: ``max_file`` is not a size.
        TypeError: ``stack_depth`` or ``rss_interval`` is not a whole number.
    """

    def __init__(
        self,
        path: "str | os.PathLike[str]",
        *,
        force: bool = False,
        stack_depth: int = STACK_DEPTH,
        max_file: "int | str | None" = None,
        rss_interval: int = RSS_INTERVAL_MS,
        holders: str = "auto",
        mode: int = MODE,
        follow: str = "fork",
    ) -> None:
        limit = parse_bytes(max_file) if isinstance(max_file, str) else int(max_file or 0)
        for name, value in (
            ("stack_depth", stack_depth),
            ("rss_interval", rss_interval),
            ("mode", mode),
        ):
            if not isinstance(value, int):
                raise TypeError(f"{name}={value!r} is not a whole number; see help(tlmem.Recorder)")
        options = Options(
            overwrite=force,
            stack_depth=stack_depth,
            limit_bytes=limit,
            rss_interval_ms=rss_interval,
            quiet=True,
            holders=holders,
            mode=mode,
            follow=follow,
        )
        script = sys.argv[0] if sys.argv else ""
        notes = {"command": " ".join(sys.argv), "script": os.path.abspath(script) if script else ""}
        self.path = os.fspath(path)
        self._options = options
        self._notes = notes
        self._session: Session | None = None

    def start(self) -> "Recorder":
        """Creates the file and begins to record."""
        session.require_native()
        if session.active is not None:
            raise CannotRecord(
                f"this process is being recorded to '{session.active.shown_path}' already; stop "
                f"that recording before '{self.path}' is started."
            )
        children.require_hook(self._options)
        recording = Session(self.path, self._options, notes=self._notes)
        recording.start()
        self._session = recording
        children.follow()
        session.seal_at_exit()
        children.announce()
        return self

    def stop(self) -> None:
        """Seals the file. Does nothing when it is not being recorded, also in a forked child."""
        recording, self._session = self._session, None
        if recording is not None and recording is session.active:
            recording.stop()
            children.announce()

    def __enter__(self) -> "Recorder":
        return self.start()

    def __exit__(
        self,
        kind: "type[BaseException] | None",
        error: "BaseException | None",
        trace: "TracebackType | None",
    ) -> None:
        self.stop()


def mark(label: str, index: int = 0) -> None:
    """Records that the program is here, with its stack; does nothing when nothing records.

    Never raises because of recording: a program behaves the same with and without it.

    Args:
        label: what is here, such as ``"epoch"``.
        index: which one, -2**63 to 2**63 - 1.
    """
    recording = session.active
    if recording is None:
        return
    try:
        recording.mark(label, index)
    except (TypeError, ValueError, OverflowError, AttributeError):
        return
    recording.offer_snapshot()


def snapshot() -> None:
    """Records now which Python objects hold arrays; does nothing when nothing records.

    One is taken anyway at the end, and when tracked memory has doubled, the run is half as long
    again, and at marks, as long as all of these together take less than 1 % of the program's CPU
    time (20 ms in a run of less than two seconds). This one is not rationed: it takes some
    milliseconds, half a second at most, during which no other thread runs.
    """
    recording = session.active
    if recording is not None:
        recording.snapshot()
