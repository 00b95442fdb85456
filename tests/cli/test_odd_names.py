"""Names that are no UTF-8, as names of files may be: every command that reads takes them."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tlmem.cli import main

FILE = "pr\udce4zise.py"
PROGRAM = f"""\
code = '''import time, numpy
kept = []
for n in range(400):
    kept.append(numpy.ones(500))
    time.sleep(0.001)
'''
exec(compile(code, {FILE!a}, 'exec'))
"""
WORDS = [f"report x.tlm --format {form}" for form in ("text", "json", "html", "markdown")]
WORDS += [f"check x.tlm --no-config --format {form}" for form in ("text", "json", "junit", "sarif")]
WORDS += [f"export x.tlm --to {form} -o out" for form in ("csv", "perfetto", "speedscope")]
WORDS += [f"export x.tlm --to {form} -o out" for form in ("parquet", "memory-viz")]
WORDS += ["balance x.tlm", "history x.tlm 1", "diff x.tlm x.tlm", "plan x.tlm --seconds 0"]
WORDS += ["plot x.tlm --kind sites -o out.svg"]


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("odd") / "x.tlm"
    words = ["record", "-q", "-o", os.fspath(path), "-c", PROGRAM]
    subprocess.run([sys.executable, "-m", "tlmem", *words], check=True, timeout=60)
    return path


@pytest.mark.parametrize("words", WORDS)
def test_a_file_name_that_is_no_utf_8_is_shown_with_an_escape(
    recording: Path,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if "parquet" in words:
        pytest.importorskip("pyarrow", reason="Parquet is written by pyarrow")
    monkeypatch.setattr(sys, "stderr", io.StringIO())  # takes halves of characters, as stderr does
    monkeypatch.chdir(tmp_path)
    os.symlink(recording, "x.tlm")

    assert main(words.split()) in (0, 1)
    shown = capsys.readouterr().out
    if words.startswith(("report", "check", "balance")) and "junit" not in words:
        assert ("pr%E4zise.py" if "sarif" in words else "udce4zise.py") in shown
