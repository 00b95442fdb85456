"""Who may import whom, how long a file may be, and what ``import tlmem`` must not load.

The table is the architecture: the reading side never imports the recording side, so that a file
recorded anywhere is read anywhere. Read with ``ast``; nothing of tlmem is imported here.
"""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TREES = {"tlmem": "tlmem", "dashboards": "tlmem.dashboards", "scenarios": "tlmem.scenarios"}
LONGEST = 500

# Lowest first: each may import those before it.
GROUND = [
    "units",
    "errors",
    "plain",
    "outputs",
    "streams",
    "events",
    "blocks",
    "segments",
    "growing",
    "timeline",
    "grouping",
    "chains",
    "chain_words",
]
GROUND += [
    "pairing",
    "names",
    "folded",
    "folding",
    "contents",
    "schema",
    "ownership",
    "holders",
    "holdings",
]
GROUND += ["tables", "runtime_tables", "tape_tables", "object_events", "device_memory", "family"]
GROUND += ["recording"]
READING = [*GROUND, "analysis", "report", "export", "gate"]
RECORDING = ["_native", "planning", "runtime", "optim", "compiler", "recorder"]
TOP = [
    "cli",
    "cli_ledger",
    "cli_check",
    "cli_pictures",
    "cli_plan",
    "cli_plan_function",
    "cli_screens",
    "doctor",
    "linking",
    "pytest_plugin",
    "testing",
    "dashboards",
    "scenarios",
]

# Part of tlmem -> the parts it may import. A part may always import itself. "" is the package, that
# is, its public names.
MAY_IMPORT = {
    "": ["public"],
    "public": [],
    **{part: GROUND[:place] for place, part in enumerate(GROUND)},
    "analysis": GROUND,
    "report": ["", *GROUND, "analysis"],
    "export": ["", *GROUND, "analysis", "report"],
    "gate": ["", *GROUND, "analysis", "report", "outputs"],
    "planning": ["errors", "_native"],
    "runtime": ["units", "errors", "events", "_native"],
    "optim": ["runtime"],
    "compiler": ["", "public", "units", "errors", "planning", "runtime"],
    "recorder": ["", "units", "errors", "events", "recording", "family", "_native", "runtime"],
    "cli": ["", "units", "errors", "streams"],
    "cli_ledger": [],
    "cli_check": ["units", "errors"],
    "cli_pictures": [],
    "cli_plan": [],
    "cli_plan_function": ["errors"],
    "cli_screens": [],
    "__main__": ["cli"],
    "doctor": ["", "units", "errors"],
    "linking": ["errors"],
    "pytest_plugin": ["", "units", "errors"],
    "testing": ["", *READING],
    "dashboards": ["", *READING],
    "scenarios": ["", *READING],
}
# What a part on top may import inside functions, beyond its row above.
INSIDE_FUNCTIONS = {
    "": [*GROUND, "planning", "recorder", "runtime", "compiler"],
    "cli": ["", *READING, *RECORDING, *TOP],
    "cli_ledger": READING,
    "cli_check": ["", *READING, *RECORDING],
    "cli_pictures": READING,
    "cli_plan": [*READING, "planning", "cli_plan_function"],
    "cli_plan_function": ["", *READING, "compiler"],
    "cli_screens": [*READING, "dashboards"],
    "doctor": ["", *READING, *RECORDING],
    "pytest_plugin": ["", *READING, *RECORDING, *TOP],
    "scenarios": ["recorder"],
    "testing": ["recorder"],
}
# Packages of others. A part that is not named has the standard library only.
THIRD_PARTY = {
    **dict.fromkeys(READING, ["numpy", "pandas"]),
    "analysis": ["numpy", "pandas", "scipy", "ruptures"],
    "report": ["numpy", "pandas", "matplotlib"],
    "gate": ["numpy", "pandas", "scipy"],
    "units": [],
    "errors": [],
    "outputs": [],
    "streams": [],
    "planning": ["numpy"],
    "runtime": ["numpy"],
    "compiler": ["numpy"],
    "scenarios": ["numpy", "pandas"],
    "testing": ["numpy", "pytest"],
    "pytest_plugin": ["pytest"],
    "dashboards": ["numpy", "pandas", "textual", "rich"],
}
THIRD_PARTY_INSIDE_FUNCTIONS = {
    "compiler": ["pandas"],
    "export": ["pyarrow"],
    "scenarios": ["scipy"],
    "recorder": ["psutil", "numpy"],
    "doctor": ["psutil", "numpy", "pandas", "cffi"],
}


def modules() -> dict[str, Path]:
    """Installed name -> file, for every Python module that is shipped."""
    found = {}
    for folder, package in TREES.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            found[".".join([package, *parts])] = path
    return found


def part_of(module: str) -> str:
    """The row of the table a module of tlmem belongs to."""
    return module.split(".")[1] if "." in module else ""


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


MODULES = modules()


def test_every_part_has_a_row() -> None:
    parts = {part_of(module) for module in MODULES}

    assert parts - set(MAY_IMPORT) == set()


@pytest.mark.parametrize("module", MODULES)
def test_imports_follow_the_table(module: str) -> None:
    part = part_of(module)
    wrong = []
    for name, line, inside in imports(MODULES[module], module, set(MODULES)):
        top = name.split(".")[0]
        if top in sys.stdlib_module_names:
            continue
        if top == "tlmem":
            allowed = [part, *MAY_IMPORT.get(part, [])]
            allowed += INSIDE_FUNCTIONS.get(part, []) if inside else []
            fine = part_of(name) in allowed
        else:
            allowed = THIRD_PARTY.get(part, [])
            allowed = allowed + (THIRD_PARTY_INSIDE_FUNCTIONS.get(part, []) if inside else [])
            fine = top in allowed
        if not fine:
            wrong.append(f"line {line}: {part or 'tlmem'} may not import {name}")

    assert wrong == []


@pytest.mark.parametrize(
    "module", [m for m in MODULES if part_of(m) in ("dashboards", "scenarios")]
)
def test_mapped_packages_never_reach_beyond_themselves_by_dots(module: str) -> None:
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    levels = [node.level for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]

    assert max(levels, default=0) <= 1


def test_no_source_file_is_longer_than_the_limit() -> None:
    places = ["tlmem", "dashboards", "scenarios", "tests", "benchmarks", "native"]
    files = [
        path
        for place in places
        for suffix in ("*.py", "*.c", "*.h", "*.m")
        for path in (ROOT / place).rglob(suffix)
        if path.name != "_native.c"
    ]
    lengths = {
        path.relative_to(ROOT).as_posix(): len(path.read_text(encoding="utf-8").splitlines())
        for path in files
    }

    assert {name: lines for name, lines in lengths.items() if lines > LONGEST} == {}


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
