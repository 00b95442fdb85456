"""``tlmem/_native.pyi`` says of each function of the C core what the headers say."""

import ast
import re
import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROTOTYPE = re.compile(
    r"^(?!typedef)([\w ]+?[ *]+)(tlm_\w+)\(([^;]*?)\);", re.MULTILINE | re.DOTALL
)


def declared(monkeypatch) -> dict[str, tuple[int, str]]:
    """Function -> (number of arguments, "None", "Any" or "int") in the headers."""
    monkeypatch.chdir(ROOT)
    text = runpy.run_path("native/build_ffi.py")["interface"]()
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    found = {}
    for returned, name, arguments in PROTOTYPE.findall(text):
        is_other = "*" in returned or returned.strip() == "tlm_place"
        kind = "Any" if is_other else "None" if returned.strip() == "void" else "int"
        found[name] = (0 if arguments == "void" else arguments.count(",") + 1, kind)
    return found


def typed() -> dict[str, tuple[int, str]]:
    """The same in the types."""
    tree = ast.parse((ROOT / "tlmem" / "_native.pyi").read_text(encoding="utf-8"))
    return {
        node.name: (len(node.args.args) - 1, ast.unparse(node.returns) if node.returns else "")
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("tlm_")
    }


def test_types_have_every_function_with_its_arguments_and_result(monkeypatch) -> None:
    functions = declared(monkeypatch)

    assert len(functions) > 100
    assert typed() == functions
