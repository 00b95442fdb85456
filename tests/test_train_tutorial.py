"""The tutorial of training runs as it stands, and its mistake is found for what it is."""

import re
import sys
from pathlib import Path

from support import programs
from support.foreign import report_of

PAGE = Path(__file__).resolve().parents[1] / "docs" / "how-to" / "train.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)


def test_every_block_runs_after_those_before_it(tmp_path: Path) -> None:
    (tmp_path / "page.py").write_text("\n".join(BLOCKS), encoding="utf-8")
    done = programs.run([sys.executable, "page.py"], tmp_path)

    assert done.returncode == 0, done.stderr.decode()
    first, *_, last, held, cleared, right, whole, checkpointed, computed = (
        done.stdout.decode().splitlines()
    )
    at_first, at_last = (float(line.split()[-1]) for line in (first, last))
    assert 0 < at_last < at_first / 2
    assert "'matmul': " in held and int(held.split()[0]) > 0 and cleared == "0"
    assert float(right.removesuffix("% right")) > 90
    assert int(checkpointed) < int(whole) and int(computed) < int(whole)
    assert (tmp_path / "model.npz").stat().st_size > 0


def test_the_mistake_of_the_page_is_reported_with_what_to_do(tmp_path: Path) -> None:
    first, mistake = BLOCKS[:2]
    keep = next(line for line in mistake.splitlines() if "append" in line)
    leaking = first.replace("losses = []", "losses, checks = [], []") + keep + "\n"
    for name, text in (("healthy", first), ("leaking", leaking)):
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        done = programs.recorded([f"{name}.py"], tmp_path, options=("-q", "-o", f"{name}.tlm"))
        assert done.returncode == 0, done.stderr.decode()

    report = report_of(tmp_path / "leaking.tlm")
    line = 1 + first.splitlines().index(next(li for li in first.splitlines() if "relu" in li))
    found = next(each for each in report["findings"] if each["kind"] == "tape-not-released")
    assert report["verdict"]["outcome"] == "leak"
    assert (Path(found["site"]["file"]).name, found["site"]["line"]) == ("leaking.py", line)
    assert {each["name"] for each in found["holders"]} >= {"tape 'matmul'", "tape 'relu'"}
    healthy = report_of(tmp_path / "healthy.tlm")
    assert {each["severity"] for each in healthy["findings"]} <= {"info"}
