"""A recording that names files it has no business with: none is opened, whatever is printed.

The file that is named 12 times over holds a secret in each of its lines. ``--source-root`` opens
files below a folder, and no trick with links, pipes, sizes or times gets anything else read.
"""

import os
import time
from pathlib import Path

import pytest
from support import story, writer
from support.programs import command

import tlmem
from tlmem.recording import source_lines

SECRET = "root:$6$secret"
CREATED_S = 1_700_000_000
"""When the recording says that it was made."""
COMMANDS = [
    *(("report", "--format", form) for form in ("text", "json", "html", "markdown")),
    *(
        ("check", "--format", form)
        for form in ("text", "json", "markdown", "junit", "github", "sarif")
    ),
    ("history", "3"),
    ("balance",),
    ("plan",),
]


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file that only its owner should see, older than the recording."""
    path = tmp_path / "private" / "shadow"
    path.parent.mkdir()
    path.write_text(f"{SECRET}\n" * 100)
    os.utime(path, (CREATED_S - 60, CREATED_S - 60))
    return path


def words_of(command_words: tuple[str, ...], file: Path) -> list[str]:
    """The words of a command line, with the file behind the command."""
    return [command_words[0], str(file), *command_words[1:]]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_no_command_prints_a_file_that_a_recording_names(
    words: tuple[str, ...], secret: Path, tmp_path: Path
) -> None:
    forged = story.write_story(tmp_path / "forged.tlm", script=str(secret))
    done = command(words_of(words, forged), tmp_path)

    printed = done.stdout + done.stderr
    assert done.returncode in (0, 1), printed
    assert b"shadow" in printed or words[0] == "plan"
    assert SECRET.encode() not in printed


@pytest.mark.parametrize("kind", ["pipe", "/dev/zero", "/proc/kmsg", "a folder"])
@pytest.mark.parametrize("rooted", [False, True])
def test_no_file_that_waits_or_never_ends_is_read(kind: str, rooted: bool, tmp_path: Path) -> None:
    named = tmp_path / "named"
    if kind == "pipe":
        os.mkfifo(named)
    elif kind == "a folder":
        named.mkdir()
    else:
        named = Path(kind)
    forged = story.write_story(tmp_path / "forged.tlm", script=str(named))
    words = ["report", forged, *(["--source-root", "/"] if rooted else [])]
    began = time.process_time()
    done = command(words, tmp_path)

    assert done.returncode == 0 and time.process_time() - began < 10


def text_of(recording: Path, root: Path, line: int = 12) -> str:
    """What a reader sees of a line that the story is made of."""
    opened = tlmem.read(recording, source_roots=[root])
    return opened.source_line(opened.info["script"], line)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder of source, older than the recording."""
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def old_file(path: Path, text: str = "the line\n" * 50) -> Path:
    """A file that is older than the recording."""
    path.write_text(text)
    os.utime(path, (CREATED_S - 60, CREATED_S - 60))
    return path


def test_a_folder_that_is_named_is_read(project: Path, tmp_path: Path) -> None:
    file = old_file(project / "train.py", "".join(f"\tline {n}\r\n" for n in range(1, 50)))
    recording = story.write_story(tmp_path / "a.tlm", script=str(file))

    assert text_of(recording, project) == "line 12"
    assert text_of(recording, project, 50) == text_of(recording, project, 2**32 - 1) == ""
    done = command(["report", recording, "--source-root", project], tmp_path)
    assert b"            line 12\n" in done.stdout


def test_what_is_recorded_goes_before_files(project: Path, tmp_path: Path) -> None:
    file = old_file(project / "train.py")
    more = [writer.line(2, 12, b"as it was")]
    recording = story.write_story(tmp_path / "a.tlm", script=str(file), more=more)

    assert text_of(recording, project) == "as it was"
    assert text_of(recording, project, 13) == "the line"


def test_a_folder_stands_for_the_one_that_the_program_ran_in(project: Path, tmp_path: Path) -> None:
    (project / "pkg").mkdir()
    old_file(project / "pkg" / "train.py")
    more = [writer.note("cwd", "/builds/1234")]
    script = "/builds/1234/pkg/train.py"
    recording = story.write_story(tmp_path / "a.tlm", script=script, more=more)

    assert text_of(recording, project) == "the line"


def test_a_relative_name_is_looked_for_below_the_folder(project: Path, tmp_path: Path) -> None:
    old_file(project / "train.c")
    recording = story.write_story(tmp_path / "a.tlm", script="train.c")

    assert text_of(recording, project) == "the line"
    assert tlmem.read(recording).source_line("train.c", 12) == ""


@pytest.mark.parametrize(
    "way", ["outside", "dots", "link", "linked folder", "cwd", "prefix", "nul", "relative"]
)
def test_no_name_leads_out_of_the_folder(
    way: str, secret: Path, project: Path, tmp_path: Path
) -> None:
    (project / "out.py").symlink_to(secret)
    (project / "linked").symlink_to(secret.parent)
    (tmp_path / "project-two").mkdir()
    old_file(tmp_path / "project-two" / "shadow", SECRET + "\n" * 30)
    script, directory = {
        "outside": (str(secret), ""),
        "dots": (f"{project}/../private/shadow", ""),
        "link": (str(project / "out.py"), ""),
        "linked folder": (str(project / "linked" / "shadow"), ""),
        "cwd": ("/builds/../private/shadow", "/builds"),
        "prefix": (str(tmp_path / "project-two" / "shadow"), ""),
        "nul": (f"{project}/out.py\0", ""),
        "relative": ("../private/shadow", ""),
    }[way]
    more = [writer.note("cwd", directory)]
    recording = story.write_story(tmp_path / "a.tlm", script=script, more=more)

    assert text_of(recording, project) == text_of(recording, project, 1) == ""


def test_a_file_that_is_swapped_for_a_link_while_it_is_opened_is_not_read(
    secret: Path, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = project / "pkg"
    folder.mkdir()
    file = old_file(folder / "shadow")
    recording = story.write_story(tmp_path / "a.tlm", script=str(file))
    lines = tlmem.read(recording, source_roots=[project]).source_lines
    really = os.open

    def swap(path: str, *rest: int) -> int:
        folder.rename(project / "was")
        folder.symlink_to(secret.parent)
        return really(path, *rest)

    monkeypatch.setattr(os, "open", swap)

    assert lines.line(str(file), 12) == ""
    assert folder.is_symlink()


def test_a_file_that_is_newer_is_named_and_not_read(project: Path, tmp_path: Path) -> None:
    file = project / "train.py"
    file.write_text("the line\n" * 50)
    recording = story.write_story(tmp_path / "a.tlm", script=str(file))

    assert text_of(recording, project) == ""
    done = command(["report", recording, "--source-root", project], tmp_path)
    words = " ".join(done.stdout.decode().split())
    assert f"The lines of {file} are not shown: it is newer than the recording." in words


def test_a_large_file_is_named_and_not_read(project: Path, tmp_path: Path) -> None:
    file = old_file(project / "train.py", "")
    os.truncate(file, source_lines.LARGEST_FILE + 1)
    os.utime(file, (CREATED_S - 60, CREATED_S - 60))
    recording = story.write_story(tmp_path / "a.tlm", script=str(file))
    opened = tlmem.read(recording, source_roots=[project])

    assert opened.source_line(str(file), 1) == ""
    assert opened.source_lines.refused == {str(file): "it is larger than 10 MB"}


def test_one_endless_line_is_cut(project: Path, tmp_path: Path) -> None:
    file = old_file(project / "train.py", "x" * 5_000_000)
    recording = story.write_story(tmp_path / "a.tlm", script=str(file))

    assert text_of(recording, project, 1) == "x" * 256


def test_a_folder_that_is_not_there_is_named(project: Path, tmp_path: Path) -> None:
    recording = story.write_story(tmp_path / "a.tlm")
    for root in (project / "nowhere", recording):
        done = command(["report", recording, "--source-root", root], tmp_path)
        assert done.returncode == 2
        assert f"tlmem: {root} is not a folder".encode() in done.stderr


def test_a_recording_without_lines_says_how_to_see_them(tmp_path: Path) -> None:
    without = story.write_story(tmp_path / "a.tlm")
    with_some = story.write_story(tmp_path / "b.tlm", more=[writer.line(2, 12, b"take()")])
    hint = b"It has no source lines; --source-root DIR reads files below DIR."

    assert hint in command(["report", without], tmp_path).stdout
    assert hint not in command(["report", with_some], tmp_path).stdout
    assert hint not in command(["report", without, "--source-root", tmp_path], tmp_path).stdout


NASTY = (
    b"\x1b]52;c;cm0gLXJm\x07 \xe2\x80\xaegnp.exe\xe2\x80\xac </script><b>\r\n::error::x \x9b31m\xff"
)


@pytest.mark.parametrize(
    "words",
    [
        *(("report", "--format", form) for form in ("text", "html", "markdown")),
        ("check",),
        ("history", "3"),
    ],
    ids=" ".join,
)
def test_recorded_lines_act_on_no_terminal_and_no_page(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    more = [writer.line(code, line, NASTY) for code in (1, 2, 3) for line in range(50)]
    forged = story.write_story(tmp_path / "forged.tlm", more=more)
    done = command(words_of(words, forged), tmp_path)
    printed = (done.stdout + done.stderr).decode()

    assert done.returncode in (0, 1)
    for acting in ("\x1b", "\x07", "\x9b", "\u202e", "\r", "\n::error::x"):
        assert acting not in printed
    assert "</script><b>" not in printed or "html" not in words
    assert "gnp.exe" in printed or words[0] == "history"


def test_lines_without_end_are_bounded(tmp_path: Path) -> None:
    more = [writer.line(2, 12, b"x" * 250_000), writer.line(2, 13, b"\x1b" * 250_000)]
    more += [writer.line(2, 1_000_000 + n, b"") for n in range(70_000)]
    recording = tlmem.read(story.write_story(tmp_path / "a.tlm", form="compact", more=more))

    assert recording.source_line(story.SCRIPT, 12) == "x" * 256
    assert recording.source_line(story.SCRIPT, 13) == "\\x1b" * 256
    names = recording._names
    assert len(names.lines) == 65_536 and names.damaged == 70_002 - 65_536
    assert any("names are damaged" in problem for problem in recording.problems)


def test_bytes_of_lines_are_bounded(tmp_path: Path) -> None:
    more = [writer.line(2, n, b"x" * 250_000) for n in range(1, 60)]
    recording = tlmem.read(story.write_story(tmp_path / "a.tlm", form="compact", more=more))

    assert len(recording._names.lines) == (8 << 20) // 250_000
    assert recording._names.damaged == 59 - (8 << 20) // 250_000


def test_a_line_that_is_shorter_than_it_says_is_damage(tmp_path: Path) -> None:
    broken = [
        writer.record(7, b"\x02\0\0\0"),
        writer.record(7, b"\x02\0\0\0\x0c\0\0\0\xff\xff\0\0x"),
    ]
    recording = tlmem.read(story.write_story(tmp_path / "a.tlm", more=broken))

    assert recording._names.lines == {} and recording._names.damaged == 2


def test_made_up_names_show_lines_only_of_their_own_functions(tmp_path: Path) -> None:
    """Whatever ``exec`` runs is of ``<string>``: a line of one text is not shown for another."""
    names = [
        writer.code(10, "<string>", "f"), writer.code(11, "<string>", "g"),
        writer.code(12, "<string>", "h"), writer.code(13, "<string>", "h"),
        writer.line(10, 3, b"mine()"), writer.line(12, 3, b"whose()"),
    ]  # fmt: skip
    recording = tlmem.read(story.write_story(tmp_path / "a.tlm", more=names))

    assert recording.source_line("<string>", 3, "f") == "mine()"
    for other in ("g", "h", ""):
        assert recording.source_line("<string>", 3, other) == ""
