"""Names in a stranger's recording cannot act on the terminal or page that shows them."""

import io
import json
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from support import writer

from tlmem.cli import main
from tlmem.recording.format.sanitize import plain
from tlmem.recording.reader import read

TITLE = "\x1b]0;owned\x07"
CLEAR = "\x9b2J\x1b[2J"
BACKWARDS = "\u202ecod.exe\u202c"
NASTY = TITLE + CLEAR + BACKWARDS + "\r\n\x00\u2028\u200b\x7f"
START, STEP = 1_000_000, 20_000_000


def at(step: float) -> int:
    return START + int(step * STEP) // 4 * 4


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A recording in which every name is nasty."""
    rows = [(at(1 + n / 1000), 4096 * (n + 1), 8000, 2, 0, 1, 1) for n in range(400)]
    steps = [(1, f"mod{NASTY}", f"var{NASTY}"), (6, "list", f"['{NASTY}']", 300)]
    meta = [
        writer.code(1, f"/home/{NASTY}/program.py", f"f{NASTY}"),
        writer.site(2, 0, 1, 3),
        writer.thread(1, f"t{NASTY}", True, 7, START),
        writer.label(1, f"epoch{NASTY}"),
        writer.note("command", f"program.py {NASTY}"),
        writer.note(f"key{NASTY}", NASTY),
        writer.holding(1, 0, at(3), steps, [4096 * (n + 1) for n in range(60)], arrays=400),
        writer.holding_totals(1, at(3)),
    ]
    threads = {1: writer.events(rows)}
    return writer.RecordingWriter(form="sealed", meta=meta, threads=threads).write(
        tmp_path / "x.tlm"
    )


def shown(*words: str) -> str:
    text = io.StringIO()
    with redirect_stdout(text):
        assert main(list(words)) == 0
    return text.getvalue()


@pytest.mark.parametrize("form", ["text", "markdown", "html", "json"])
def test_no_form_of_the_report_lets_a_name_act(path: Path, form: str) -> None:
    report = shown("report", "--format", form, str(path))
    if form == "json":
        report = json.dumps(json.loads(report), ensure_ascii=False)

    assert "owned" in report
    assert plain(report, but="\n") == report


@pytest.mark.parametrize("command", ["balance", "history"])
def test_nor_do_the_commands_about_objects(path: Path, command: str) -> None:
    told = shown(command, str(path), *(["0"] if command == "history" else []))

    assert plain(told, but="\n") == told


def test_tables_have_the_escapes_in_words(path: Path) -> None:
    recording = read(path)
    told = [
        *recording.sites["file"].astype(str),
        *recording.sites["function"].astype(str),
        *recording.threads["name"].astype(str),
        *recording.holdings["words"],
        *recording.holdings["chain"],
        *recording.holding_steps["type"],
        *recording.info,
    ]

    assert [text for text in told if plain(text) != text] == []
    assert any("\\x1b]0;owned\\x07" in text and "\\u202ecod.exe" in text for text in told)
    assert recording.info["command"].endswith("\\r\n\\x00\\u2028\\u200b\\x7f")


@pytest.mark.parametrize("text", ["naïve/прог.py", "数据.py", "\udcff.py", "a b\xa0c", "é🙂"])
def test_what_people_write_stays_as_it_is(text: str) -> None:
    assert plain(text) == text
