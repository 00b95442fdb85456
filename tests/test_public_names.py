"""The public names: the table that is used, what type checkers are told, and what is there."""

import ast
import subprocess
import sys
from pathlib import Path

import tlmem
from tlmem._exports import MODULE_OF

STUB = Path(tlmem.__file__).with_name("__init__.pyi")


def test_the_stub_names_what_the_table_names() -> None:
    imports = [n for n in ast.parse(STUB.read_text("utf-8")).body if isinstance(n, ast.ImportFrom)]
    told = {alias.asname: node.module for node in imports for alias in node.names}

    assert told == MODULE_OF


def test_every_public_name_is_there() -> None:
    listed = dir(tlmem)

    assert [name for name in MODULE_OF if getattr(tlmem, name, None) is None] == []
    assert [name for name in MODULE_OF if name not in listed] == []


def test_no_public_name_hides_a_module() -> None:
    modules = {path.stem for path in STUB.parent.glob("*.py")}

    assert modules & set(MODULE_OF) == set()


def test_looking_at_the_package_does_not_load_the_runtime() -> None:
    code = "import sys, tlmem; dir(tlmem); print([m for m in sys.modules if 'tlmem.runtime' in m])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert said.stdout.strip() == "[]"
