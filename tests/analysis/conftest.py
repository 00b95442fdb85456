"""``TLMEM_KEEP_SIMULATED=FOLDER`` keeps the simulated recordings that these tests have judged.

``python -m corpus.ablation`` judges them again with each rule switched off.
"""

import contextlib
import os
import pickle
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.traces import Told

import tlmem.analysis


@pytest.fixture(autouse=True)
def kept_recordings(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Every recording that a test analyses is written to the folder that the environment names."""
    folder = os.environ.get("TLMEM_KEEP_SIMULATED", "")
    if folder:
        name = re.sub(r"[^\w.-]+", "-", request.node.name)[:100]
        evidence_of, numbers = tlmem.analysis.evidence_of, iter(range(1000))

        def kept(recording: Any) -> Any:
            if not isinstance(recording, Told):  # a file, which has a recording of its own
                return evidence_of(recording)
            with contextlib.suppress(AttributeError, pickle.PicklingError):  # has a local function
                file = Path(folder, f"{name}-{next(numbers)}.pickle")
                file.write_bytes(pickle.dumps(recording))
            return evidence_of(recording)

        monkeypatch.setattr(tlmem.analysis, "evidence_of", kept)
    yield
