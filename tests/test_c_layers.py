"""A folder of ``native`` is a layer; its README.md says what it uses: ``May use: platform, log``.

Checked for every folder, whatever files it holds: no include and no call goes to a folder that the
line leaves out, and the folders form no circle. The sources are read as text, with both branches of
every ``#if``; a prototype is no use of what it declares. ``include`` may be used by all.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

NATIVE = Path(__file__).resolve().parents[1] / "native"
FOR_ALL = "include"
NOT_OURS = {"examples"}  # programs that use the library
WORD = re.compile(r"\b[A-Za-z_]\w*\b")
INCLUDE = re.compile(
    r'^[ \t]*#[ \t]*(?:include|import|define[ \t]+\w+)[ \t]+"([^"]+)"', re.MULTILINE
)
NOISE = re.compile(r"/\*.*?\*/|//[^\n]*|'(?:\\.|[^'\\\n])+'|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)
DIRECTIVE = re.compile(r"^[ \t]*[#@](?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
MACRO = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+\w+(?:\([^)]*\))?((?:[^\n]*\\\n)*[^\n]*)", re.MULTILINE
)
ATTRIBUTE = re.compile(r"__attribute__\s*\(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\)")


# Names that other files see carry a prefix (test_c_lint.py).
NAME = r"\b((?:tlmi?|ops)_\w+)\s*"
FUNCTION = re.compile(NAME + r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\s*$")
NO_VARIABLE = re.compile(r"typedef\b|_Static_assert\b|(?:struct|union|enum)\s+\w+$")
VARIABLES = re.compile(NAME + r"(?:\[[^\]]*\]\s*)*(?:,|$)")


@dataclass
class Source:
    """What one file includes, defines for other files, declares, and uses."""

    folder: str
    name: str
    includes: list[str]
    defines: set[str] = field(default_factory=set)
    declares: set[str] = field(default_factory=set)
    uses: set[str] = field(default_factory=set)


def statements(code: str) -> list[tuple[str, str]]:
    """What stands at file level, each as its head and its body: ``int f(void)`` and ``{...}``.

    Raises:
        ValueError: the braces do not balance, so that nothing could be said about the file.
    """
    found, depth, begin, head = [], 0, 0, ""
    for at, letter in enumerate(code):
        if letter == "{":
            if depth == 0:
                head = code[begin:at]
            depth += 1
        elif letter == "}":
            depth -= 1
            if depth == 0 and head.rstrip().endswith(")"):  # a function
                found.append((head, code[begin + len(head) : at + 1]))
                begin, head = at + 1, ""
        elif letter == ";" and depth == 0:
            head = head or code[begin:at]
            found.append((head, code[begin + len(head) : at + 1]))
            begin, head = at + 1, ""
        if depth < 0:
            break
    if depth != 0:
        raise ValueError("braces do not balance")
    return found


def read_statement(source: Source, head: str, body: str, is_header: bool) -> None:
    """Adds to a source what one statement at file level defines, declares and uses."""
    head = ATTRIBUTE.sub(" ", head).strip()
    is_seen = not re.search(r"\bstatic\b", head.partition("(")[0]) or (
        is_header and "inline" in head
    )
    function = FUNCTION.search(head)
    names = set(VARIABLES.findall(head.split("=")[0]))
    if head.startswith("extern"):
        source.declares |= names
    elif function and body == ";" and not head.startswith("typedef"):
        source.declares.add(function[1])
    else:
        if is_seen and function and body.startswith("{"):
            source.defines.add(function[1])
        elif is_seen and not is_header and not NO_VARIABLE.match(head):
            source.defines |= names
        source.uses |= set(WORD.findall(head + body))


def read_source(root: Path, path: Path) -> Source:
    """One file as the test sees it."""
    text = path.read_text(encoding="utf-8")
    folder = path.parent.relative_to(root).as_posix()
    source = Source(folder, path.name, INCLUDE.findall(text))
    blank = NOISE.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)
    code = DIRECTIVE.sub(" ", blank)
    try:
        for head, body in statements(code):
            read_statement(source, head, body, path.suffix == ".h")
    except ValueError as error:
        raise ValueError(f"{folder}/{path.name}: {error}") from None
    for body in MACRO.findall(blank):
        source.uses |= set(WORD.findall(body))
    return source


def read_sources(root: Path) -> list[Source]:
    """Every C file of the folders that are ours. What the public headers name is their promise."""
    paths = [p for p in sorted(root.rglob("*.[chm]")) if not NOT_OURS & set(p.parts)]
    sources = [read_source(root, path) for path in paths]
    for source in sources:
        if source.folder == FOR_ALL:
            source.uses.clear()
    return sources


def read_rules(root: Path, folders: set[str]) -> tuple[dict[str, set[str]], list[str]]:
    """What each folder may use by its README.md, and what is wrong with those lines."""
    rules: dict[str, set[str]] = {}
    wrong = []
    for folder in sorted(folders):
        readme = root / folder / "README.md"
        text = readme.read_text(encoding="utf-8") if readme.exists() else ""
        lines = re.findall(r"^May use: (.+)$", text, re.MULTILINE)
        if len(lines) != 1:
            wrong.append(f"{folder}: its README.md has {len(lines)} lines 'May use: ...', not one")
        named = {n.strip(" .`") for line in lines for n in line.split(",")} - {"nothing"}
        wrong += [
            f"{folder} may use {name}, which is not a folder" for name in sorted(named - folders)
        ]
        rules[folder] = named & folders
    return rules, wrong


def find_circle(arrows: dict[str, set[str]]) -> list[str]:
    """Folders that lead back to the first of them; none when there is no circle."""
    finished: set[str] = set()

    def visit(folder: str, way: list[str]) -> list[str]:
        if folder in way:
            return [*way[way.index(folder) :], folder]
        if folder in finished:
            return []
        for next_one in sorted(arrows.get(folder, ())):
            if circle := visit(next_one, [*way, folder]):
                return circle
        finished.add(folder)
        return []

    return next((circle for folder in sorted(arrows) if (circle := visit(folder, []))), [])


def violations(root: Path) -> list[str]:
    """Every include and call below ``root`` that the folders do not allow, and every circle."""
    sources = read_sources(root)
    rules, wrong = read_rules(root, {source.folder for source in sources})
    owners: dict[str, set[str]] = {}
    for source in sources:
        for name in source.defines:
            owners.setdefault(name, set()).add(source.folder)
    arrows: dict[str, set[str]] = {folder: set() for folder in rules}
    for source in sources:
        allowed = rules[source.folder] | {source.folder, FOR_ALL}
        here = f"{source.folder}/{source.name}"
        for include in source.includes:
            to = include.rpartition("/")[0] or FOR_ALL
            if to in rules:
                arrows[source.folder].add(to)
            if to in rules and to not in allowed:
                wrong.append(f"{here} includes {include}: {source.folder} may not use {to}")
        for name in sorted(source.uses & owners.keys()):
            arrows[source.folder] |= owners[name]
            if not owners[name] & allowed:
                to = ", ".join(sorted(owners[name]))
                wrong.append(f"{here} uses {name}: {source.folder} may not use {to}")
    for what, graph in (("README.md", rules), ("the sources", arrows)):
        circle = find_circle({folder: to - {folder} for folder, to in graph.items()})
        if circle:
            wrong.append(f"a circle in {what}: {' > '.join(circle)}")
    return wrong


def test_folders_use_only_what_their_readme_says() -> None:
    assert violations(NATIVE) == []


def test_the_reader_sees_a_definition_for_all_that_headers_declare() -> None:
    sources = read_sources(NATIVE)
    defined = set().union(*(source.defines for source in sources))
    declared = {
        f"{source.folder}/{source.name}: {name}"
        for source in sources
        if source.name.endswith(".h")
        for name in source.declares - defined
    }

    assert declared == set()


# ---- the test fails where it should: on a small tree with one fault in it ----

TREE = {
    "include/tlm.h": "int tlm_open(void);",
    "ground/README.md": "# ground\nMay use: nothing",
    "ground/ground.h": '#include "tlm.h"\nint tlmi_clock(void);\nextern int tlmi_on;',
    "ground/clock.c": '#include "ground/ground.h"\nint tlmi_on = 1;\n'
    "int tlmi_clock(void)\n{\n    return tlmi_on; /* tlmi_open() */\n}",
    "log/README.md": "# log\nMay use: ground",
    "log/log.h": '#include "ground/ground.h"\nint tlmi_append(int kind);',
    "log/log.c": '#include "log/log.h"\nint tlmi_append(int kind)\n{\n'
    "    return tlmi_clock() + kind;\n}\nint tlm_open(void)\n{\n    return 0;\n}",
    "include/README.md": "# include\nMay use: nothing",
}  # fmt: skip


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in TREE.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text + "\n", encoding="utf-8")
    return tmp_path


def change(tree: Path, name: str, text: str) -> None:
    with (tree / name).open("a", encoding="utf-8") as file:
        file.write(text + "\n")


def test_a_tree_without_faults_passes(tree: Path) -> None:
    assert violations(tree) == []


def test_an_include_upward_is_found(tree: Path) -> None:
    change(tree, "ground/clock.c", '#include "log/log.h"')

    assert "ground/clock.c includes log/log.h: ground may not use log" in violations(tree)


@pytest.mark.parametrize(
    "text",
    [
        "static int now(void)\n{\n    return tlmi_append(1);\n}",
        "static int (*later)(int) = tlmi_append;",
        "#define NOW \\\n    tlmi_append(1)",
        "int tlmi_append(int kind);\n__attribute__((constructor(200))) static void go(void)\n"
        "{\n    tlmi_append(2);\n}",
    ],
)
def test_a_call_upward_is_found_without_an_include(tree: Path, text: str) -> None:
    change(tree, "ground/clock.c", text)

    assert "ground/clock.c uses tlmi_append: ground may not use log" in violations(tree)


def test_a_public_function_of_a_layer_above_is_a_call_upward(tree: Path) -> None:
    change(tree, "ground/clock.c", "static int go(void)\n{\n    return tlm_open();\n}")

    assert violations(tree)[0] == "ground/clock.c uses tlm_open: ground may not use log"


def test_a_circle_that_the_readmes_allow_is_found(tree: Path) -> None:
    (tree / "ground/README.md").write_text("# ground\nMay use: log\n", encoding="utf-8")
    change(tree, "ground/clock.c", '#include "log/log.h"')

    assert violations(tree) == [
        "a circle in README.md: ground > log > ground",
        "a circle in the sources: ground > log > ground",
    ]


def test_a_folder_says_once_what_it_may_use(tree: Path) -> None:
    (tree / "ground/README.md").unlink()
    (tree / "log/README.md").write_text("May use: ground, attic\n", encoding="utf-8")

    assert violations(tree) == [
        "ground: its README.md has 0 lines 'May use: ...', not one",
        "log may use attic, which is not a folder",
    ]


def test_a_file_that_cannot_be_read_is_not_passed_over(tree: Path) -> None:
    change(tree, "log/log.c", "int tlmi_half(void)\n{")

    with pytest.raises(ValueError, match=r"log/log.c: braces do not balance"):
        violations(tree)
