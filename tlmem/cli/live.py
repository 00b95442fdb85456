"""``tlmem live``: follow a program while it is recorded; ``tlmem.dashboards`` has the screens.

``--prometheus`` answers scrapes in place of the screens, see ``tlmem.export.metrics``.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from tlmem.cli.arguments import UsageError, new_parser, require_terminal


def run(words: list[str]) -> int:
    """Runs ``tlmem live [FILE|PID] [--prometheus ADDRESS]``."""
    parser = new_parser(
        "live",
        "Follows a program while it is recorded: memory over time, lines that hold it, all "
        "processes of a family together. Space pauses, arrows scrub back, q quits; the program "
        "does not notice, and it can be followed again at any time.",
    )
    parser.add_argument(
        "target",
        nargs="?",
        metavar="FILE|PID",
        help="a recording, or the number of a process that is recorded (default: the newest "
        "recording of this directory that is being written)",
    )
    parser.add_argument(
        "--prometheus",
        metavar="[HOST]:PORT",
        help="show nothing and answer Prometheus instead, until it is interrupted: live bytes and "
        "growth by line, resident memory, verdict (without HOST: to this machine alone)",
    )
    given = parser.parse_args(words)
    if given.prometheus is not None:
        return _answer(given.target, given.prometheus)
    from tlmem.dashboards import opening

    is_file = given.target is not None and not given.target.isdigit()
    require_terminal(given.target if is_file else "FILE")
    return opening.follow(given.target)


def _answer(target: str | None, text: str) -> int:
    """Answers scrapes until Ctrl-C; returns 0."""
    from tlmem.dashboards.model.live import find_recording
    from tlmem.export import metrics
    from tlmem.recording.format.segments import Source, read_header

    try:
        address = metrics.parse_address(text)
    except ValueError as error:
        raise UsageError(f"{error}.") from None
    path = find_recording(target, Path.cwd())
    read_header(Source(path))
    server, port = metrics.serve(path, address)
    sys.stderr.write(f"tlmem: {path} at http://{address[0]}:{port}/metrics; Ctrl-C ends it.\n")
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        pass
    finally:
        server.shutdown()
    return 0
