"""``python reading.py RUN.tlm``: checks it and its children's recordings, prints JSON.

The program's own must be complete and have a report. A child may have been killed, so its recording
may have no end; but it must be readable, and no event may be lost.
"""

import contextlib
import io
import json
import sys
from pathlib import Path

import tlmem
from tlmem.cli import main
from tlmem.errors import EmptyRecording


def check(path: Path) -> dict:
    """Counts files and events, and says what is wrong with which file."""
    faults, events, lost = [], 0, 0
    others = sorted(other for other in path.parent.iterdir() if other != path)
    if not path.exists():
        faults.append("the run left no recording")
    else:
        out, error = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
            code = main(["report", "--format", "json", str(path)])
        if code != 0:
            faults.append(f"tlmem report: exit {code}: {error.getvalue()[-500:]}")
        else:
            found = json.loads(out.getvalue())["recording"]
            events, lost = found["events"], found["lost"]
            if not found["complete"]:
                faults.append("the recording is not complete")
    for other in others:
        try:
            recording = tlmem.read(other)
            events += recording.event_count
            lost += recording.lost_events
        except EmptyRecording:
            pass  # killed right after the fork, before its first event, as by a test of os.kill
        except Exception as error:
            faults.append(f"{other.name}: {type(error).__name__}: {error}")
    if lost:
        faults.append(f"{lost} events lost")
    return {"files": path.exists() + len(others), "events": events, "lost": lost, "faults": faults}


print(json.dumps(check(Path(sys.argv[1]))))
