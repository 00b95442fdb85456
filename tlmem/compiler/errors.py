"""What cannot be compiled, said where it stands and with what to write instead."""

from __future__ import annotations

from typing import Any

from tlmem.errors import TlmemError


class NotCompilable(TlmemError):
    """A construct that ``@tlmem.compile`` refuses; nothing was compiled, the function is unchanged.

    ``train.py:41: cannot compile 'with' in forward: <what to write instead>``.

    Attributes:
        file, line: where it stands; line 0 when the source is not known.
        construct: what it is, as the program writes it.
        function: the name of the function.
        advice: what to write instead.
    """

    def __init__(self, construct: str, function: str, advice: str, file: str, line: int) -> None:
        where = f"{file}:{line}" if line else file
        super().__init__(f"{where}: cannot compile {construct} in {function}: {advice}")
        self.file, self.line = file, line
        self.construct, self.function, self.advice = construct, function, advice

    def __reduce__(self) -> Any:
        given = (self.construct, self.function, self.advice, self.file, self.line)
        return type(self), given
