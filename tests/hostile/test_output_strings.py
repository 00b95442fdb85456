"""Names of every kind in a forged recording: none acts where the output is shown or opened.

On terminals, in the logs of CI jobs, on pages, in comments, in spreadsheets and in pictures.
"""

import csv
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from support import story, writer
from support.programs import command

import tlmem
from tlmem.recording.format.sanitize import plain

NASTY = (
    "::error file=a::owned ##[error]owned ##vso[task.x]owned %0A::error::owned "
    "\x1b]52;c;b3duZWQ=\x07\x9b31m\u202egnp\u2066\u200b\U000e0041\r\n::warning::owned\x00\u2028"
    "</script><script>owned()</script><img src=x onerror=owned()>\"'&]]>--><!-- "
    "| ` ``` [x](https://evil.example) ![y](http://evil.example/y) @octocat #1 www.evil.example "
    "$\\frac{$ ${x} ^_{} \\ \udcff"
)
FORMULA = '=HYPERLINK("http://evil.example","x")'
ACTING = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\U000e0000-\U000e007f]"
)


@pytest.fixture(scope="module")
def forged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A leak in which whatever has a name has this one."""
    file, function = f"/home/{NASTY}/{NASTY}.py", f"{NASTY}f{NASTY}"
    notes = ("script", "command", "exit", "op.16", "pool.6", "numpy.handler", "executable", NASTY)
    more = [
        *(writer.code(number, file, function) for number in (1, 2, 3)),
        writer.code(4, f"/usr/lib/site-packages/{NASTY}.py", FORMULA),
        *(writer.label(number, f"{NASTY}{number}") for number in story.LABELS if number < 4),
        writer.label(6, FORMULA),
        *(writer.note(key, f"/home/{NASTY}") for key in notes),
        writer.thread(1, NASTY, True, 100, story.START),
        *(
            writer.line(code, line, writer.encoded(NASTY))
            for code in (1, 2, 3)
            for line in range(50)
        ),
    ]
    return story.write_story(tmp_path_factory.mktemp("forged") / "forged.tlm", more=more)


def printed(forged: Path, *words: str) -> str:
    """What a command writes, to either stream."""
    done = command([words[0], forged, *words[1:]], forged.parent)
    assert done.returncode in (0, 1) and b"Traceback" not in done.stderr, done.stderr.decode()
    return done.stdout.decode()


@pytest.mark.parametrize(
    "words",
    [
        ("report",),
        ("report", "--format", "markdown"),
        ("check",),
        ("check", "--format", "markdown"),
        ("check", "--format", "junit"),
        ("balance",),
        ("history", "3"),
        ("plan",),
    ],
    ids=" ".join,
)
def test_no_text_acts_on_a_terminal_or_a_log(words: tuple[str, ...], forged: Path) -> None:
    text = printed(forged, *words)

    assert "owned" in text or words[0] == "plan"
    assert ACTING.findall(text) == []
    for line in text.splitlines():
        assert not line.lstrip().startswith("::")
        assert "##[" not in line and "##vso[" not in line.lower()


def test_every_command_in_the_log_of_a_job_is_ours(forged: Path) -> None:
    lines = printed(forged, "check", "--format", "github").splitlines()
    commands = [line for line in lines if line.lstrip().startswith("::")]

    assert commands and ACTING.findall("".join(lines)) == []
    for line in commands:
        name, given, data = re.fullmatch(r"::(error|notice|warning) ([^:]*)::(.*)", line).groups()  # type: ignore[union-attr]
        assert [pair.split("=")[0] for pair in given.split(",")] == ["file", "line", "title"]
        assert "%0A::" not in data.replace("%250A::", "")


def test_documents_can_be_parsed(forged: Path) -> None:
    ElementTree.fromstring(printed(forged, "check", "--format", "junit"))
    for words in (("report",), ("check",), ("balance",), ("history", "3"), ("plan",)):
        text = printed(forged, *words, "--format", "json")
        assert ACTING.findall(json.dumps(json.loads(text), ensure_ascii=False)) == []
    (run,) = json.loads(printed(forged, "check", "--format", "sarif"))["runs"]
    for uri in re.findall(r'"uri": "([^"]*)"', json.dumps(run)):
        assert re.fullmatch(r"[A-Za-z0-9._~%/:-]*", uri)


@pytest.mark.parametrize("name", ["report", "check"])
def test_a_comment_has_no_link_mention_or_element(name: str, forged: Path) -> None:
    comment = printed(forged, name, "--format", "markdown")
    fences = re.sub(r"^(`{3,})text\n.*?^\1$", "", comment, flags=re.DOTALL | re.MULTILINE)
    outside = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", fences)

    for part in ("<script", "<img", "@octocat", " #1 ", "://", "www.evil", "[x]", "![y]", "$"):
        assert part not in outside


class Elements(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.found += [tag, *(name for name, _ in attrs if name.startswith("on"))]


def test_a_page_has_no_element_of_theirs(forged: Path) -> None:
    page = printed(forged, "report", "--format", "html")
    found = Elements(page).found

    assert found.count("script") == 2 and "img" not in found and "onerror" not in found
    assert ACTING.findall(page.replace("\t", "")) == []


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_pictures_are_drawn_whatever_the_names(ending: str, forged: Path, tmp_path: Path) -> None:
    done = command(["plot", forged, "--kind", "all", "-o", tmp_path / f"out.{ending}"], tmp_path)

    assert done.returncode == 0, done.stderr.decode()
    drawn = list(tmp_path.glob(f"*.{ending}"))
    assert drawn  # all kinds in one picture
    for path in drawn if ending == "svg" else []:
        found = {element.tag.rpartition("}")[2] for element in ElementTree.parse(path).iter()}
        assert "script" not in found and "a" not in found


@pytest.mark.parametrize("to", ["csv", "parquet", "perfetto", "speedscope", "memory-viz"])
def test_exports_are_written_whatever_the_names(to: str, forged: Path, tmp_path: Path) -> None:
    if to == "parquet":
        pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    done = command(["export", forged, "--to", to, "-o", tmp_path / "out"], tmp_path)

    assert done.returncode == 0, done.stderr.decode()


def test_no_cell_is_a_formula(forged: Path, tmp_path: Path) -> None:
    """OWASP, "CSV Injection": a cell that begins with = + - @, a tab or a return is computed."""
    assert (
        command(["export", forged, "--to", "csv", "-o", tmp_path / "out"], tmp_path).returncode == 0
    )
    cells = []
    for path in (tmp_path / "out").glob("*.csv"):
        with path.open(newline="", encoding="utf-8") as file:
            cells += [cell for row in csv.reader(file) for cell in row]

    assert f"'{FORMULA}" in cells
    for cell in cells:
        number = re.fullmatch(r"-?[0-9.]+(e[+-]?\d+)?", cell)
        assert (
            number
            or not re.match("[\\s\"']*[=+@\t\r\n-]", cell.removeprefix("'"))
            or cell[0] == "'"
        )
    assert any(cell.startswith("-") for cell in cells)  # numbers stay numbers


def test_tables_are_as_they_were_recorded(forged: Path) -> None:
    assert FORMULA in set(tlmem.read(forged).sites["function"])


@pytest.mark.parametrize(
    "text",
    [
        "std::vector<int>::at",
        "(anonymous namespace)::f",
        "a[0]::b",
        "test_a.py::test",
        "::f",
        "# a",
    ],
)
def test_names_of_other_languages_stay(text: str) -> None:
    shown = plain(text)

    assert shown == (text if text != "::f" else "\\x3a:f")
