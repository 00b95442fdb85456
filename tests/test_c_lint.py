"""Rules for the C sources that a compiler does not check.

A line that breaks one for a reason says so with ``tlm-lint: ok`` in a comment.
"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CORE = sorted((ROOT / "native").rglob("*.[chm]"))
OURS = [
    path for path in CORE if "examples" not in path.parts
]  # those are programs of somebody else
ALL = [*CORE, *sorted((ROOT / "tests" / "native").rglob("*.[chm]"))]
OPT_OUT = "tlm-lint: ok"
MAY_ALLOCATE = {"own_memory.c", "backend_cpu.c", "player.c"}
HEAP = re.compile(r"(?<![\w.>])(malloc|calloc|realloc|free|strdup|strndup|asprintf)\s*\(")
DEFINITION = re.compile(
    r"^(?!static|TLMI_INLINE|typedef|#|extern|\s|/|\*)[\w][\w\s*]*?\b(\w+)\s*\(", re.MULTILINE
)
HEADERS = [
    ROOT / "native" / name
    for name in (
        "include/tlmem_log.h",
        "include/tlmem.h",
        "include/tlmem_tape.h",
        "include/tlmem_plan.h",
        "include/tlmem_replay.h",
        "include/tlmem_python.h",
    )
]


def interface() -> str:
    """What stands between the cffi markers: what Python sees."""
    texts = [path.read_text(encoding="utf-8") for path in HEADERS]
    return "".join(t.split("/* cffi: begin */")[1].split("/* cffi: end */")[0] for t in texts)


def name_of(path: Path) -> str:
    """The file as it is cited."""
    return path.relative_to(ROOT).as_posix()


def code_lines(path: Path) -> list[tuple[int, str]]:
    """Numbered lines with comments and strings blanked; lines that opted out are left out."""
    text = path.read_text(encoding="utf-8")
    kept = {number for number, line in enumerate(text.splitlines(), 1) if OPT_OUT not in line}
    blank = lambda match: re.sub(r"[^\n]", " ", match.group())  # noqa: E731
    text = re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', blank, text, flags=re.DOTALL)
    return [(n, line) for n, line in enumerate(text.splitlines(), 1) if n in kept]


def test_heap_functions_are_called_in_few_places() -> None:
    calls = [
        f"{name_of(path)}:{n}: {line.strip()}"
        for path in OURS
        if path.name not in MAY_ALLOCATE
        for n, line in code_lines(path)
        if HEAP.search(line)
    ]

    assert calls == []


def test_every_file_opens_with_its_licence_and_purpose() -> None:
    """The second line is ``name: purpose``."""
    wrong = []
    for path in ALL:
        lines = path.read_text(encoding="utf-8").splitlines()
        licence = lines[0].startswith("/* SPDX-License-Identifier: MIT")
        if not (licence and re.match(rf" \* {re.escape(path.name)}: \S.*", lines[1])):
            wrong.append(name_of(path))

    assert wrong == []


def test_functions_seen_by_other_files_carry_the_prefix() -> None:
    bare = []
    for path in (p for p in OURS if p.suffix == ".c"):
        code = "\n".join(line for _, line in code_lines(path))
        prefixes = ("ops_",) if path.parent.name == "ops" else ("tlm_", "tlmi_")
        names = DEFINITION.findall(code)
        bare += [f"{name_of(path)}: {name}" for name in names if not name.startswith(prefixes)]

    assert bare == []


def test_no_name_begins_with_an_underscore() -> None:
    defined = re.compile(r"^\s*#\s*define\s+(_\w+)|\b(?:struct|enum|union)\s+(_\w+)\s*\{")
    allowed = {"_GNU_SOURCE", "_DEFAULT_SOURCE", "_DARWIN_C_SOURCE"}
    wrong = []
    for path in CORE:
        for n, line in code_lines(path):
            found = defined.search(line)
            if found and (found.group(1) or found.group(2)) not in allowed:
                wrong.append(f"{name_of(path)}:{n}: {found.group()}")

    assert wrong == []


def test_the_rules_have_files_to_look_at() -> None:
    assert len(OURS) > 100
    assert {path.suffix for path in OURS} >= {".c", ".h"}


def test_the_type_stub_names_every_public_function() -> None:
    bare = re.sub(r"/\*.*?\*/", "", interface(), flags=re.DOTALL)
    public = set(re.findall(r"\b(tlm_\w+)\s*\((?!\*)", bare))
    stub = (ROOT / "tlmem" / "_native.pyi").read_text(encoding="utf-8")
    typed = set(re.findall(r"def (tlm_\w+)\(", stub))

    assert typed == public


def test_every_public_function_says_what_it_promises() -> None:
    lines = interface().splitlines()
    bare = []
    for above, line in zip(lines, lines[1:], strict=False):
        is_prototype = re.match(r"\w[\w\s*]*\btlm_\w+\(", line)
        if is_prototype and not (above.rstrip().endswith(("*/", ";"))):
            bare.append(line)

    assert bare == []


def test_comments_name_files_that_exist() -> None:
    there = {path.name for path in ALL}
    wrong = []
    for path in ALL:
        comments = re.findall(r"/\*.*?\*/", path.read_text(encoding="utf-8"), re.DOTALL)
        named = {name for text in comments for name in re.findall(r"\b[a-z]\w*\.[chm]\b", text)}
        wrong += [f"{name_of(path)} names {name}" for name in sorted(named - there)]

    assert wrong == []
