"""The first look at a recording."""

from pathlib import Path

import numpy as np
import pytest
from support.story import STEPS, write_story
from tlmem.dashboards.model import glance as glance_module
from tlmem.dashboards.model.glance import glance, script_name

from tlmem.errors import DamagedRecording, EmptyRecording, MissingFile, NotARecording, TlmemError
from tlmem.recording.reader import read


@pytest.mark.parametrize("form", ["sealed", "compact", "raw"])
def test_a_first_look_knows_program_length_and_samples(tmp_path: Path, form: str) -> None:
    path = write_story(tmp_path / "x.tlm", form)
    look, recording = glance(path), read(path)

    assert look.script == "train.py"
    assert look.events == recording.event_count
    assert look.seconds == pytest.approx(recording.seconds)
    assert look.samples["anon"].tolist() == recording.samples["anon"].tolist()
    assert look.running == (form != "sealed")


def test_threads_that_allocate_are_not_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_story(tmp_path / "x.tlm")
    monkeypatch.setattr(glance_module, "MOST_EVENTS", 1000)
    decoded = []
    plain = glance_module.Loader.load
    monkeypatch.setattr(
        glance_module.Loader,
        "load",
        lambda self, pieces, *a, **k: decoded.append(pieces) or plain(self, pieces, *a, **k),
    )
    look = glance(path)

    assert set(np.concatenate(decoded)["thread"].tolist()) == {2}
    assert look.events > STEPS * 10
    assert look.samples["anon"].notna().all() and look.samples["tracked"].isna().all()


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (None, MissingFile),
        (b"", EmptyRecording),
        (b"#!/usr/bin/env python\n", NotARecording),
        (b"TLMEM\r\n\x1a" + bytes(30), EmptyRecording),
    ],
)
def test_a_file_that_is_no_recording_is_refused(
    tmp_path: Path, content: bytes | None, error: type[TlmemError]
) -> None:
    path = tmp_path / "x.tlm"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(error):
        glance(path)


def test_a_damaged_recording_never_ends_in_another_error(tmp_path: Path) -> None:
    whole = write_story(tmp_path / "whole.tlm").read_bytes()
    path, random = tmp_path / "x.tlm", np.random.default_rng(7)
    for _ in range(40):
        data = bytearray(whole[: int(random.integers(100, len(whole)))])
        for at in random.integers(60, len(data), 20).tolist():
            data[at] ^= int(random.integers(1, 256))
        path.write_bytes(data)
        try:
            assert glance(path).path == path
        except TlmemError as error:
            assert isinstance(error, EmptyRecording | DamagedRecording | NotARecording)


def test_a_program_without_a_script_is_called_by_its_command() -> None:
    path = Path("x.tlm")

    assert script_name({"command": "-c  print(1)"}, path) == "-c print(1)"
    assert script_name({"script": "/a/b.py", "command": "b.py 3"}, path) == "b.py"
    assert script_name({}, path) == "x.tlm"
