"""Who may import whom: read from the folders themselves, so that there is no second list.

The docstring of each package says it in two lines, and this test reads them with ``ast``; nothing
of tlmem is imported::

    May import: errors, units, recording.format. Inside functions: recorder.
    Third-party: numpy, pandas. Inside functions: pyarrow.

A name is a folder or file of tlmem, and covers all below it; ``tlmem`` stands for the public
names. Files of one folder may import each other. The modules directly in ``tlmem`` say it in their
own docstrings.
"""

import ast
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TREES = {"tlmem": "tlmem", "dashboards": "tlmem.dashboards", "scenarios": "tlmem.scenarios"}
RECORDING_SIDE = {"recorder", "runtime", "compiler"}
READING_SIDE = {
    "recording", "analysis", "planning", "replaying", "report", "export", "gate", "dashboards",
}  # fmt: skip
CALL_THE_CORE = ("tlmem.planning.planner", "tlmem.replaying.cuda", "tlmem.replaying.pools")
"""Of the reading side: what computes in C, and nothing else, is called by these modules."""
MOST_FILES = 25
MOST_MODULES_AT_THE_TOP = 8


@dataclass
class Rule:
    """What one part may import: at its head, and inside functions as well."""

    parts: list[str]
    parts_inside: list[str]
    packages: list[str]
    packages_inside: list[str]


def installed_name(tree: Path, package: str, path: Path) -> str:
    """The name a file is imported by."""
    parts = path.relative_to(tree).with_suffix("").parts
    return ".".join([package, *(parts[:-1] if parts[-1] == "__init__" else parts)])


def modules(root: Path = ROOT) -> dict[str, Path]:
    """Installed name -> file, for every Python module that is shipped."""
    return {
        installed_name(root / folder, package, path): path
        for folder, package in TREES.items()
        for path in sorted((root / folder).rglob("*.py"))
    }


def names_after(word: str, text: str) -> tuple[list[str], list[str]]:
    """The names behind ``word:`` up to a blank line or the next word; inside functions apart."""
    found = re.search(rf"^{word}:(.*?)(?=^\S[\w -]*:|^\s*$|\Z)", text, re.MULTILINE | re.DOTALL)
    if found is None:
        return [], []
    outer, _, inner = found[1].partition("Inside functions:")

    def listed(names: str) -> list[str]:
        words = [name.strip().rstrip(".").strip("`") for name in names.split(",")]
        return [name for name in words if name and name not in ("nothing", "none")]

    return listed(outer), listed(inner)


def rule_of(path: Path) -> Rule | None:
    """What the docstring of a file allows; None where it says nothing."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    if "May import:" not in text:
        return None
    return Rule(*names_after("May import", text), *names_after("Third-party", text))


def part_of(module: str, files: dict[str, Path]) -> str:
    """The folder that a module stands in, below ``tlmem``; the module itself where that is the top.

    The extension module and the public names are parts, too.
    """
    if module in ("tlmem", "tlmem._native"):
        return module.removeprefix("tlmem.")
    own = files.get(module)
    package = module if own and own.name == "__init__.py" else module.rpartition(".")[0]
    return (package if package != "tlmem" else module).removeprefix("tlmem.")


def imports(path: Path, module: str, known: set[str]) -> list[tuple[str, int, bool]]:
    """(Imported module, line, whether inside a function) of every import statement."""

    def visit(node: ast.AST, inside: bool):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            return
        inside = inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno, inside
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = module if path.name == "__init__.py" else module.rpartition(".")[0]
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                whole = f"{base}.{alias.name}"
                yield (
                    whole if whole in known or whole == "tlmem._native" else base,
                    node.lineno,
                    inside,
                )
        for child in ast.iter_child_nodes(node):
            yield from visit(child, inside)

    return list(visit(ast.parse(path.read_text(encoding="utf-8")), False))


def rules(files: dict[str, Path]) -> dict[str, Rule]:
    """Part -> what it may import, of the parts that say so."""
    found = {}
    for module, path in files.items():
        if path.name == "__init__.py" or module.count(".") == 1:
            rule = rule_of(path)
            if rule is not None:
                found[part_of(module, files)] = rule
    return found


def covers(names: list[str], part: str) -> bool:
    """Whether a list names the part or a folder above it."""
    return any(part == name or part.startswith(f"{name}.") for name in names)


def wrong_imports(root: Path = ROOT) -> list[str]:
    """Every import that the docstring of its folder does not allow."""
    files = modules(root)
    allowed = rules(files)
    found = []
    for module, path in files.items():
        part = part_of(module, files)
        rule = allowed.get(part, Rule([], [], [], []))
        for name, line, inside in imports(path, module, set(files)):
            top = name.split(".")[0]
            if top in sys.stdlib_module_names:
                continue
            if top == "tlmem":
                target = part_of(name, files)
                names = rule.parts + (rule.parts_inside if inside else [])
                fine = target == part or covers(names, target) or covers(names, name[6:])
            else:
                target = top
                fine = top in rule.packages + (rule.packages_inside if inside else [])
            if not fine:
                place = path.relative_to(root).as_posix()
                found.append(f"{place}:{line}: {part} may not import {target}")
    return found


def rings(graph: dict[str, set[str]]) -> list[list[str]]:
    """The circles of a graph, each named once, from its first name."""
    found = {}
    for start in sorted(graph):
        stack, seen = [(start, [start])], set()
        while stack:
            part, way = stack.pop()
            for target in sorted(graph.get(part, ())):
                if target == start:
                    found.setdefault(frozenset(way), [*way, start])
                elif target not in seen:
                    seen.add(target)
                    stack.append((target, [*way, target]))
    return list(found.values())


def circles(root: Path = ROOT) -> list[list[str]]:
    """Folders, and files, that import each other in a circle before any function is called.

    A folder and a folder within it are one house: of these only files are looked at.
    """
    files = modules(root)
    folders: dict[str, set[str]] = {}
    single: dict[str, set[str]] = {}
    for module, path in files.items():
        part = part_of(module, files)
        for name, _, inside in imports(path, module, set(files)):
            if inside or name not in files or name == "tlmem":
                continue
            target = part_of(name, files)
            if name != module:
                single.setdefault(module, set()).add(name)
            if not covers([part], target) and not covers([target], part):
                folders.setdefault(part, set()).add(target)
    return [*rings(folders), *rings(single)]


MODULES = modules()


def test_every_folder_says_what_it_may_import() -> None:
    folders = {m: path for m, path in MODULES.items() if path.name == "__init__.py"}

    assert [m for m, path in folders.items() if m != "tlmem" and rule_of(path) is None] == []


def test_imports_follow_what_the_folders_say() -> None:
    assert wrong_imports() == []


def test_what_the_folders_say_is_needed() -> None:
    """A permission that nothing uses is a line that says less than the truth."""
    used: dict[str, set[str]] = {}
    for module, path in MODULES.items():
        part = part_of(module, MODULES)
        for name, _, _ in imports(path, module, set(MODULES)):
            used.setdefault(part, set()).add(name.removeprefix("tlmem."))
    idle = [
        f"{part}: {name}"
        for part, rule in rules(MODULES).items()
        for name in [*rule.parts, *rule.parts_inside, *rule.packages, *rule.packages_inside]
        if not any(covers([name], target) for target in used.get(part, ()))
    ]

    assert idle == []


def test_folders_import_each_other_in_no_circle() -> None:
    assert circles() == []


def test_the_reading_side_never_imports_the_recording_side() -> None:
    """A file recorded anywhere is read anywhere; only planner and replay call the extension."""
    wrong = []
    for module, path in MODULES.items():
        part = part_of(module, MODULES)
        if part.split(".")[0] not in READING_SIDE:
            continue
        for name, line, _ in imports(path, module, set(MODULES)):
            target = part_of(name, MODULES).split(".")[0] if name.startswith("tlmem") else ""
            computes = target == "_native" and module in CALL_THE_CORE
            if target in RECORDING_SIDE or (target == "_native" and not computes):
                wrong.append(f"{path.relative_to(ROOT)}:{line}: {target}")

    assert wrong == []


def plant(root: Path, files: dict[str, str]) -> Path:
    """A small tree of folders as ours."""
    for tree in TREES:
        (root / tree).mkdir(exist_ok=True)
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


def test_a_planted_import_upward_is_found(tmp_path: Path) -> None:
    tree = plant(
        tmp_path,
        {
            "tlmem/__init__.py": "",
            "tlmem/low/__init__.py": '"""Low.\n\nMay import: nothing.\n"""\n',
            "tlmem/low/ground.py": "import numpy\nfrom tlmem.high.roof import top\n",
            "tlmem/high/__init__.py": '"""High.\n\nMay import: low.\n"""\n',
            "tlmem/high/roof.py": "from tlmem.low import ground\n",
        },
    )

    assert wrong_imports(tree) == [
        "tlmem/low/ground.py:1: low may not import numpy",
        "tlmem/low/ground.py:2: low may not import high",
    ]
    assert circles(tree) == [
        ["high", "low", "high"],
        ["tlmem.high.roof", "tlmem.low.ground", "tlmem.high.roof"],
    ]


def test_mapped_packages_never_reach_beyond_themselves_by_dots() -> None:
    wrong = []
    for module, path in MODULES.items():
        if part_of(module, MODULES).split(".")[0] in ("dashboards", "scenarios"):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            levels = [node.level for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
            if max(levels, default=0) > 1:
                wrong.append(module)

    assert wrong == []


def test_no_folder_holds_more_files_than_one_can_look_over() -> None:
    """C and Python; a folder that is a layer fits on a screen."""
    counted: dict[str, int] = {}
    for place in (*TREES, "native"):
        for path in (ROOT / place).rglob("*"):
            if path.suffix in (".py", ".c", ".h", ".m") and path.name != "_native.c":
                folder = path.parent.relative_to(ROOT).as_posix()
                counted[folder] = counted.get(folder, 0) + (path.name != "__init__.py")

    included = {name: n for name, n in counted.items() if not name.startswith("tlmem/include")}
    assert {name: n for name, n in included.items() if n > MOST_FILES} == {}


def test_few_modules_stand_at_the_top() -> None:
    assert len(list((ROOT / "tlmem").glob("*.py"))) <= MOST_MODULES_AT_THE_TOP


def test_the_package_file_stays_short() -> None:
    assert len((ROOT / "tlmem/__init__.py").read_text(encoding="utf-8").splitlines()) <= 40


def loaded_after(code: str) -> set[str]:
    """Top-level modules in memory after running code in a fresh interpreter."""
    code += "\nimport sys; print(' '.join({name.split('.')[0] for name in sys.modules}))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT / "docs"
    )
    return set(result.stdout.split())


def test_importing_tlmem_loads_nothing_heavy() -> None:
    loaded = loaded_after("import tlmem, tlmem.cli")

    assert loaded & {"numpy", "pandas", "matplotlib", "textual", "psutil"} == set()


def test_mapped_packages_are_only_known_by_their_installed_names() -> None:
    loaded = loaded_after("import tlmem.dashboards, tlmem.scenarios")

    assert loaded & {"dashboards", "scenarios"} == set()
