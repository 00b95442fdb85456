"""``python -m tlmem.runtime.tensors.stubs``: writes the files that follow from the operations.

They are what cannot be found out at run time: the public names, which must be known before NumPy is
imported (``tlmem/_exports.py``), what type checkers read (``tlmem/__init__.pyi``,
``operators.pyi``), and the lists of docs/reference/tensor.md. A test finds them out of date.
Does not cover: the operations (``rows``).
"""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import fill
from typing import Any

from tlmem.runtime.tensors import functions, operators, shaping
from tlmem.runtime.tensors.rows import ALONG, FUNCTION, FUNCTIONS, METHODS, OF_TWO, ROWS

DECLARING = (functions, operators, shaping)
"""All operations are declared when these are imported."""
PACKAGE = Path(__file__).parents[2]
PAGE = PACKAGE.parent / "docs" / "reference" / "tensor.md"
WIDTH = 100
LISTS = (
    ("- Two operands:", OF_TWO, ", with"),
    ("- One operand:", FUNCTION, "; and"),
    ("Along an axis:", ALONG, "."),
)
"""Of the page: how a list begins, which kind of operations it names, what follows it."""
HEAD = '''"""The operators and operations of a tensor, for type checkers; written by ``stubs``."""

from collections.abc import Callable
from typing import Any

from tlmem.runtime.tensors.computing import Axis
from tlmem.runtime.tensors.rows import METHODS as METHODS
from tlmem.runtime.tensors.rows import ROWS as ROWS
from tlmem.runtime.tensors.tensor import Tensor

BY_NAME: dict[str, Callable[..., Any]]

class Operators:
    __array_priority__: int
'''


def names_by_module() -> dict[str, list[str]]:
    """The public functions of the operations, by the module that declares them."""
    found = defaultdict(list)
    for name, function in FUNCTIONS.items():
        found[function.__module__].append(name)
    return {module: sorted(names) for module, names in sorted(found.items())}


def exports(text: str) -> str:
    """``_exports.py`` with the names of the operations."""
    for module, names in names_by_module().items():
        key = module.removeprefix("tlmem.")
        flat = " ".join(names)
        entry = f'    "{key}": "{flat}",\n'
        if len(entry) > WIDTH + 1:
            lines = fill(flat, WIDTH - 12).splitlines()
            rows = [f'        "{line} "\n' for line in lines[:-1]] + [f'        "{lines[-1]}"\n']
            entry = f'    "{key}": (\n{"".join(rows)}    ),\n'
        pattern = rf'    "{re.escape(key)}": (?:"[^"]*"|\([^)]*\)),\n'
        text, count = re.subn(pattern, entry, text)
        assert count == 1, f"_exports.py has no entry {key}"
    return text


def public(text: str) -> str:
    """``__init__.pyi`` with the names of the operations."""
    for module, names in names_by_module().items():
        line = f"from {module} import {', '.join(f'{name} as {name}' for name in names)}\n"
        if len(line) > WIDTH + 1:
            rows = "".join(f"    {name} as {name},\n" for name in names)
            line = f"from {module} import (\n{rows})\n"
        pattern = rf"from {re.escape(module)} import (?:\([^)]*\)|[^(\n]*)\n"
        text, count = re.subn(pattern, line, text)
        assert count == 1, f"__init__.pyi imports nothing from {module}"
    return text


def methods() -> str:
    """``operators.pyi``: the operators of the class, and the operations that are its methods."""
    lines = [HEAD]
    for name, made in sorted(vars(operators.Operators).items()):
        if name in METHODS:
            lines.append(wrapped(f"    def {name}{signature(made)}: ...\n"))
        elif inspect.isfunction(made) and name.startswith("__"):
            rest = ", other: Any" if made.__code__.co_argcount == 2 else ""
            result = "int" if name == "__hash__" else "Any" if rest else "Tensor"
            lines.append(f"    def {name}(self{rest}) -> {result}: ...\n")
    return "".join(lines)


def signature(function: Callable[..., Any]) -> str:
    """That of a method; the tensor comes first."""
    found = inspect.signature(function)
    first, *rest = found.parameters.values()
    own = first.replace(name="self", annotation=inspect.Parameter.empty)
    text = str(found.replace(parameters=[own, *rest]))
    return re.sub(r"'([^']*)'", r"\1", text)


def wrapped(line: str) -> str:
    """A definition as the formatter would break it."""
    if len(line) <= WIDTH + 1:
        return line
    begin, _, rest = line.partition("(")
    inside, _, end = rest.rpartition(")")
    if len(inside) + 8 > WIDTH:
        inside = inside.replace(", ", ",\n        ") + ","
    return f"{begin}(\n        {inside}\n    ){end}"


def documented(text: str) -> str:
    """``docs/reference/tensor.md`` with its lists of operations."""
    for begin, kind, end in LISTS:
        names = ", ".join(f"`{name}`" for name, row in ROWS.items() if row.kind == kind)
        after = end.replace(" ", r"\s+").replace(".", r"\.")
        pattern = rf"{re.escape(begin)}[`\w,\s]*{after}"
        text, count = re.subn(pattern, f"{begin} {names}{end}", text)
        assert count == 1, f"tensor.md has no list that begins with {begin}"
    items = re.split(r"(?m)^(?=- )", text)
    changed = tuple(begin for begin, *_ in LISTS if begin.startswith("- "))
    return "".join(bullet(each) if each.startswith(changed) else each for each in items)


def bullet(text: str) -> str:
    """An item of a list, wrapped as the pages are."""
    return fill(" ".join(text.split()), 140, subsequent_indent="  ", break_on_hyphens=False) + "\n"


def files() -> Iterator[tuple[Path, str]]:
    """Each file, and what should be in it."""
    path = PACKAGE / "_exports.py"
    yield path, exports(path.read_text("utf-8"))
    path = PACKAGE / "__init__.pyi"
    yield path, public(path.read_text("utf-8"))
    yield Path(__file__).with_name("operators.pyi"), methods()
    if PAGE.exists():  # not beside an installed package
        yield PAGE, documented(PAGE.read_text("utf-8"))


def main() -> None:
    for path, text in files():
        path.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
