"""``%%tlmem`` in a real kernel: one notebook is run, and each test looks at its cells."""

import re
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat", reason="needs nbformat and nbclient: tlmem[test]")
nbclient = pytest.importorskip("nbclient", reason="needs nbclient: tlmem[test]")
pytest.importorskip("tlmem._native", reason="the magic records, which needs the extension")

CELLS = {
    "load": "%load_ext tlmem\nimport numpy as np\nkept, cache = [], {}",
    "older": "older = np.ones((300, 300))\nolder",
    "keeps": "%%tlmem -o cell.tlm\n"
    "for i in range(40):\n"
    "    kept.append(np.ones(1000))\n"
    "cache['<b>'] = np.zeros(5000)\n"
    "np.zeros((100, 100))",
    "out": "Out.keys()",
    "exists": "%%tlmem -o cell.tlm\nx = 1",
    "frees": "%%tlmem\ntemporary = np.ones(10_000)\ndel temporary\nprint('done')",
    "nothing": "%%tlmem\nx = 2;",
    "fails": "%%tlmem\n1 / 0",
    "again": "import tlmem; len(tlmem.read('cell.tlm').objects)",
    "one call": "%%tlmem -o call.tlm\n"
    "from scipy.integrate import solve_ivp\n"
    "solve_ivp(lambda t, y: -y, (0, 800), np.ones(60), max_step=0.1).y.shape",
    "judged": "from tlmem.analysis import analyse\n"
    "print(analyse(tlmem.read('call.tlm')).verdict.sentence)",
    "read": "tlmem.read('cell.tlm')",
}


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """Name of a cell -> its outputs."""
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(text) for text in CELLS.values()]
    folder = str(tmp_path_factory.mktemp("notebook"))
    client = nbclient.NotebookClient(
        notebook,
        kernel_name="python3",
        allow_errors=True,
        timeout=600,
        resources={"metadata": {"path": folder}},
    )
    client.execute()
    return {name: cell.outputs for name, cell in zip(CELLS, notebook.cells, strict=True)}


def shown(found: list[Any]) -> tuple[str, str]:
    """The report below a cell, as text and as HTML."""
    (report,) = [each for each in found if each.output_type == "display_data"]
    return report.data["text/plain"], report.data["text/html"]


def test_what_a_cell_keeps_is_shown_by_line_and_holder(outputs: dict[str, list[Any]]) -> None:
    text, html = shown(outputs["keeps"])
    lines = [" ".join(line.split()) for line in text.splitlines()]

    assert "320 kB 40 line 2" in lines
    at = lines.index("320 kB 40 line 2")
    assert lines[at + 1 : at + 3] == [
        "kept.append(np.ones(1000))",
        "held by list 'kept' (module __main__, 40 items)",
    ]
    assert "held by the cell's result, Out[3]" in lines
    assert any(line.startswith("held by dict 'cache'") for line in lines)
    assert "older" not in text
    assert "Recording: cell.tlm" in lines
    assert "<svg" in html and "<b>" not in html.replace("<br>", "")


def test_a_cell_gives_what_it_gives_without_the_magic(outputs: dict[str, list[Any]]) -> None:
    (result,) = [each for each in outputs["keeps"] if each.output_type == "execute_result"]
    (failed,) = [each for each in outputs["fails"] if each.output_type == "error"]
    printed = [each.text for each in outputs["frees"] if each.output_type == "stream"]

    assert result.data["text/plain"].startswith("array([[0., 0.")
    assert "3" in outputs["out"][0].data["text/plain"]
    assert failed.ename == "ZeroDivisionError"
    assert printed == ["done\n"]
    assert [each.output_type for each in outputs["nothing"]] == ["display_data"]


def test_what_is_freed_and_what_was_never_there_is_said(outputs: dict[str, list[Any]]) -> None:
    assert "All of them are freed." in shown(outputs["frees"])[0]
    assert "The cell allocated no arrays or tensors." in shown(outputs["nothing"])[0]
    assert shown(outputs["fails"])[0]


def test_a_file_that_exists_is_kept_and_named_in_one_sentence(
    outputs: dict[str, list[Any]],
) -> None:
    said = "".join(each.get("text", "") for each in outputs["exists"])

    assert re.search(r"UsageError: tlmem: .*cell\.tlm.*exists", said)
    assert "Traceback" not in said


def test_a_recording_shows_itself_in_a_notebook(outputs: dict[str, list[Any]]) -> None:
    html = outputs["read"][0].data["text/html"]

    assert outputs["again"][0].data["text/plain"].isdigit()
    assert "cell.tlm" in html and "peak" in html and "Traceback" not in html


def test_one_call_of_a_library_may_be_its_result(outputs: dict[str, list[Any]]) -> None:
    (said,) = outputs["judged"]

    assert "were kept within one call of a library at " in said.text


def test_the_extension_is_named_in_the_docs() -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "notebooks.md"

    assert "%load_ext tlmem" in page.read_text(encoding="utf-8")
