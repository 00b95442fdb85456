"""How many events a recording holds, or records a file of memray; prints JSON.

A process of its own, so that the one that measures stays small: a child's peak memory as the system
counts it is never below what its parent had.
"""

import json
import sys


def count(path: str) -> int:
    """By the tool that wrote it."""
    if path.endswith(".tlm"):
        from tlmem.recording.reader import read

        return read(path).event_count
    import memray

    reader = memray.FileReader(path)
    records = reader.metadata.total_allocations
    reader.close()
    return records


if __name__ == "__main__":
    print(json.dumps([count(path) for path in sys.argv[1:]]))
