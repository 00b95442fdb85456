"""Opens a recording, builds its tables and finds what there is to find; prints JSON.

Seconds are counted after the imports, which are counted apart; bytes are the peak of the process.
"""

import json
import resource
import sys
import time

began = time.monotonic()

import tlmem.analysis  # noqa: E402
from tlmem.recording.reader import read  # noqa: E402

imported = time.monotonic()


TABLES = (
    *("events", "objects", "samples", "sites", "site_totals", "marks", "threads"),
    *("holders", "scopes", "misuses", "pools", "ops", "passes", "devices"),
)
"""All that is derived from events."""


def peak_bytes() -> int:
    """Of resident memory so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
        1 if sys.platform == "darwin" else 1024
    )


def measure(path: str) -> dict[str, float]:
    """Seconds of each step, in order, and what was there."""
    found = {"imports_s": imported - began}
    steps = time.monotonic()
    recording = read(path)
    found["open_s"] = time.monotonic() - steps
    steps = time.monotonic()
    rows = sum(len(getattr(recording, table)) for table in TABLES)
    found["tables_s"] = time.monotonic() - steps
    found["tables_peak_bytes"] = peak_bytes()
    steps = time.monotonic()
    analysis = tlmem.analysis.analyse(recording)
    found["findings_s"] = time.monotonic() - steps
    found["peak_bytes"] = peak_bytes()
    return {
        **found,
        "rows": rows,
        "events": recording.event_count,
        "findings": len(analysis.findings),
    }


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1])))
