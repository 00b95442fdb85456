"""``tlmem history``, ``balance`` and ``diff`` on recordings of real programs."""

import json
import subprocess
from pathlib import Path

import pytest
from support import programs
from support.foreign import Run, line_with

import tlmem
from tlmem.analysis.ledger.balance import balance
from tlmem.analysis.ledger.history import NoSuchObject, history
from tlmem.report import balance as balance_report
from tlmem.report import history as history_report

PROGRAMS = Path(__file__).parents[2] / "scenarios" / "programs"
MOVED = 3
KEPT = """
import tlmem
for step in range(20_000):
    with tlmem.scope("step"):
        one = tlmem.empty(8)
        if step % 100 == 0:
            tlmem.acquire(one, "keeper")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with recordings of scenarios; the lines of the repaired one are ``MOVED``."""
    folder = tmp_path_factory.mktemp("ledger")
    repaired = folder / "over_retain_fixed.py"
    repaired.write_text("# moved\n" * MOVED + path_of("over_retain").read_text(encoding="utf-8"))
    words = {name: [str(path_of(name))] for name in ("over_retain", "dict_cache")}
    for name, program in {**words, repaired.stem: [str(repaired), "fixed"]}.items():
        done = programs.recorded(program, folder, options=("-q", "-o", f"{name}.tlm"))
        assert done.returncode == 0, done.stderr
    return folder


def path_of(scenario: str) -> Path:
    """The file of a scenario."""
    return next(PROGRAMS.glob(f"*/{scenario}.py"))


def line_of(scenario: str, text: str) -> str:
    """``name.py:LINE`` of the line of a scenario with this text."""
    lines = path_of(scenario).read_text(encoding="utf-8").splitlines()
    return f"{scenario}.py:{next(n for n, line in enumerate(lines, 1) if text in line)}"


def command(folder: Path, *words: str) -> "subprocess.CompletedProcess[bytes]":
    return programs.command(words, folder)


def told(folder: Path, *words: str) -> str:
    """What a command says that must not fail."""
    done = command(folder, *words)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode()


def largest(folder: Path, name: str) -> str:
    """The number of an object that the report shows as an example of what is alive."""
    report = json.loads(told(folder, "report", f"{name}.tlm", "--format", "json"))
    found = next(f for f in report["findings"] if f["kind"] == "growing-site")
    return str(found["object"])


def test_history_shows_the_line_that_took_and_never_gave_back(folder: Path) -> None:
    text = told(folder, "history", "over_retain.tlm", largest(folder, "over_retain"))
    marked = [line for line in text.splitlines() if line.startswith("!")]

    assert len(marked) == 1
    assert "acquire" in marked[0] and "reader" in marked[0]
    assert marked[0].endswith(f"{line_of('over_retain', 'tlmem.acquire(')} read")
    assert f"allocated at {line_of('over_retain', 'tlmem.full')} in main" in text


def test_history_of_the_program_that_is_put_right_has_a_pair_for_everything(folder: Path) -> None:
    text = json.loads(told(folder, "history", "over_retain_fixed.tlm", "24", "--format", "json"))

    assert text["unpaired"] == []
    assert text["died_seconds"] is not None


def test_history_of_an_array_that_is_kept_is_its_allocation(folder: Path) -> None:
    number = largest(folder, "dict_cache")
    told_of = json.loads(told(folder, "history", "dict_cache.tlm", number, "--format", "json"))

    assert [step["event"] for step in told_of["steps"]] == ["alloc"]
    made = told_of["made"]
    assert f"{Path(made['file']).name}:{made['line']}" == line_of("dict_cache", "# leaks here")


def test_history_of_an_object_that_is_not_there_is_one_sentence(folder: Path) -> None:
    done = command(folder, "history", "over_retain.tlm", "123456")

    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"tlmem: over_retain.tlm has no object 123456; numbers go from 0")
    assert done.stderr.count(b"\n") == 1


def test_balance_shows_the_line_that_took_and_who_holds(folder: Path) -> None:
    rows = told(folder, "balance", "over_retain.tlm").splitlines()
    at = next(n for n, row in enumerate(rows) if line_of("over_retain", "tlmem.acquire(") in row)

    assert rows[at].replace(",", "").split()[:6] == ["2000", "0", "2000", "2000", "16.4", "MB"]
    assert rows[at + 1].strip() == "held by reader: 2,000"
    assert not any(line_of("over_retain", "batch.sum") in row for row in rows)


def test_balance_of_the_program_that_is_put_right_leaves_at_most_its_last_step(
    folder: Path,
) -> None:
    told_of = json.loads(told(folder, "balance", "over_retain_fixed.tlm", "--format", "json"))
    at_exit = told(folder, "balance", "over_retain_fixed.tlm", "--at-exit")
    steps = (tlmem.read(folder / "over_retain_fixed.tlm").scopes["label"] == "step").sum()

    # In each step the scope, the reader and the caller of sum() take; how many, time says.
    assert steps >= 6_000
    assert told_of["taken"] >= 3 * (steps - 1) and told_of["unpaired"] <= 3
    assert "every acquire has its release" in " ".join(at_exit.split())


def test_balance_of_one_line_counts_what_was_made_there(folder: Path) -> None:
    leaking = line_of("dict_cache", "# leaks here")
    words = ["balance", "dict_cache.tlm", "--site", leaking, "--format", "json"]
    told_of = json.loads(told(folder, *words))

    assert (told_of["unpaired"], told_of["objects"]) == (4000, 4000)
    assert {node["unpaired"] for node in told_of["nodes"]} == {4000}


def test_balance_of_a_line_that_made_nothing_is_one_sentence(folder: Path) -> None:
    done = command(folder, "balance", "over_retain.tlm", "--site", "nowhere.py")

    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(
        b"tlmem: nothing in over_retain.tlm was allocated at 'nowhere.py'; most objects were "
    )
    assert done.stderr.count(b"\n") == 1


def test_a_runtime_in_c_has_a_history_and_a_balance_too(
    steps: Path, recorded: Run, tmp_path: Path
) -> None:
    assert recorded(steps, "leak", 50).returncode == 0
    tree = json.loads(told(tmp_path, "balance", "run.tlm", "--format", "json"))
    forgets = [node for node in tree["nodes"] if node["holders"]]
    number = str(tlmem.read(tmp_path / "run.tlm").objects.query("died_ns < 0").index[0])
    life = json.loads(told(tmp_path, "history", "run.tlm", number, "--format", "json"))
    (unpaired,) = life["unpaired"]

    assert forgets[0]["holders"][0] == {"name": "look", "count": forgets[0]["unpaired"]}
    assert (forgets[0]["unpaired"], forgets[0]["taken"]) == (50, 50)
    assert forgets[0]["site"]["line"] == line_with("retained here")
    assert life["steps"][unpaired - 1]["holder"] == "look"


def test_of_events_that_were_folded_only_what_is_alive_is_told(tmp_path: Path) -> None:
    (tmp_path / "kept.py").write_text(KEPT, encoding="utf-8")
    assert programs.recorded(["kept.py"], tmp_path, options=("-q", "-o", "k.tlm")).returncode == 0
    recording = tlmem.read(tmp_path / "k.tlm", detail_events=40_000)
    found = balance(recording)
    text = " ".join(balance_report.render_text(found).split())
    life = history(recording, str(recording.objects.index[0]))

    assert found.folded_events > 40_000 and "The oldest " in text
    assert found.objects >= 200
    assert "held by a holder that is not in the recording: " in text and "held by keeper: " in text
    assert life.folded and "first events are folded" in history_report.render_text(life)
    with pytest.raises(NoSuchObject, match="freed before events were folded"):
        history(recording, "1")


FAIL = ["--fail-on", "new-findings", "--fail-on", "growth"]


def test_diff_names_the_leak_that_came_and_fails_on_request(folder: Path) -> None:
    words = ["diff", "over_retain_fixed.tlm", "over_retain.tlm"]
    done = command(folder, *words, *FAIL)
    text, why = done.stdout.decode(), done.stderr.decode()
    leaking = line_of("over_retain", "tlmem.full(")

    assert done.returncode == 1
    assert "   No leak found in " in text and f"   Leak at {leaking}: " in text
    assert "New in B\n  error, growing-site: " in text
    before = int(leaking.partition(":")[2]) + MOVED
    assert f"{leaking} main (A: line {before})" in text
    assert f"growing-site at {leaking}" in why and "B grows (leak) and A does not" in why
    assert all(line.startswith("tlmem: ") for line in why.splitlines())
    assert told(folder, *words) == text


def test_report_explains_its_verdict_on_request(folder: Path) -> None:
    text = told(folder, "report", "--explain", "over_retain.tlm")

    assert text.split("\n\n")[1].startswith("Why this verdict\n   1. ")
    assert f"      {line_of('over_retain', 'tlmem.full(')}: grows\n" in text
    assert "Why this verdict" not in told(folder, "report", "over_retain.tlm")


def test_diff_of_a_leak_that_went_passes(folder: Path) -> None:
    text = told(folder, "diff", "over_retain.tlm", "over_retain_fixed.tlm", *FAIL)

    assert "Gone in B\n  error, growing-site: " in text and "New in B" not in text


def test_diff_finds_lines_again_in_a_checkout_elsewhere_where_they_moved(
    folder: Path, tmp_path: Path
) -> None:
    source = path_of("dict_cache").read_text(encoding="utf-8")
    (tmp_path / "moved.py").write_text("# one\n\n# two\n" + source, encoding="utf-8")
    done = programs.recorded(
        ["moved.py"], tmp_path, options=("-q", "-o", str(folder / "moved.tlm"))
    )
    assert done.returncode == 0, done.stderr
    words = ["diff", "dict_cache.tlm", "moved.tlm", *FAIL, "--format", "json"]
    told_of = json.loads(told(folder, *words))
    both = [(f["a"]["site"]["line"], f["b"]["site"]["line"]) for f in told_of["findings"]["both"]]

    assert (told_of["findings"]["new"], told_of["findings"]["gone"]) == ([], [])
    assert both and all(b == a + 3 for a, b in both)
    assert all(line["site_a"] and line["site_b"] for line in told_of["lines"])


@pytest.mark.parametrize("content", [None, b"", b"no recording\n" * 300])
@pytest.mark.parametrize("broken_first", [True, False])
def test_diff_refuses_what_report_refuses(
    folder: Path, tmp_path: Path, content: bytes | None, broken_first: bool
) -> None:
    broken, good = tmp_path / "x.tlm", folder / "dict_cache.tlm"
    if content is not None:
        broken.write_bytes(content)
    pair = [str(broken), str(good)] if broken_first else [str(good), str(broken)]
    done, report = command(tmp_path, "diff", *pair, *FAIL), command(tmp_path, "report", str(broken))

    assert (done.returncode, done.stdout, done.stderr) == (report.returncode, b"", report.stderr)
    assert done.returncode in (2, 3)


@pytest.mark.parametrize(("content", "code"), [(None, 2), (b"", 3), (b"no recording\n" * 300, 2)])
@pytest.mark.parametrize(
    "words", [["history", "x.tlm", "1"], ["balance", "x.tlm"]], ids=lambda words: words[0]
)
def test_what_is_no_recording_is_refused_as_by_report(
    words: list[str], content: bytes | None, code: int, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / "x.tlm").write_bytes(content)
    done = command(tmp_path, *words)

    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (code, b"", 1)
    assert done.stderr.startswith(b"tlmem: ")
