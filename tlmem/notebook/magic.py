"""The cell magic ``%%tlmem``.

Covers: its options, running the cell, the recording. Does not cover: what is shown (``page``).
"""

from __future__ import annotations

import ast
import os
import tempfile
from types import CodeType
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from IPython.display import display

from tlmem.errors import TlmemError
from tlmem.notebook.page import Cell, CellReport
from tlmem.recorder import Recorder, once, session
from tlmem.report.summary import summarise


@magics_class
class TlmemMagics(Magics):
    """``%%tlmem``."""

    @magic_arguments()
    @argument("-o", "--output", metavar="FILE", help="keep the recording in this file")
    @argument("-f", "--force", action="store_true", help="replace the file")
    @cell_magic
    def tlmem(self, line: str, cell: str) -> Any:
        """Records the cell and shows below it what it kept, who holds that, and its peak.

        The cell runs as it would without: what it prints, shows, returns and raises is the same.
        Arrays that earlier cells made are not counted. Times are those of the cell.
        """
        given = parse_argstring(self.tlmem, line)
        shell: Any = self.shell
        number = len(shell.user_ns["In"]) - 1
        text, name, body, last = self._compiled(cell, number)
        known = once.of_script(text.encode(), name, os.getcwd())
        with tempfile.TemporaryDirectory(prefix="tlmem-") as folder:
            path = given.output or os.path.join(folder, "cell.tlm")
            recorder = Recorder(path, force=given.force)
            try:
                recorder.start()
            except TlmemError as error:
                raise UsageError(f"tlmem: {error}") from None
            if known.note and session.active is not None:
                session.active.note("once", known.note)
            try:
                exec(body, shell.user_ns)
                result = eval(last, shell.user_ns) if last else None
            finally:
                recorder.stop()
                self._show(path, Cell(name, number), given.output is not None)
        return result

    def _compiled(self, cell: str, number: int) -> tuple[str, str, CodeType, CodeType | None]:
        """Text, name and code of the cell as IPython compiles it, its last expression apart."""
        shell: Any = self.shell
        text = shell.transform_cell(cell)
        tree = shell.transform_ast(shell.compile.ast_parse(text))
        name = shell.compile.cache(text, number, raw_code=cell)
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr) and not text.rstrip().endswith(";"):
            last = shell.compile(ast.Expression(tree.body.pop().value), name, "eval")
        return text, name, shell.compile(tree, name, "exec"), last

    def _show(self, path: str, cell: Cell, kept: bool) -> None:
        """Shows the report; what cannot be read is one sentence below the cell."""
        try:
            display(CellReport.of(summarise([path]), cell, path if kept else None))
        except TlmemError as error:
            print(f"tlmem: {error}")
