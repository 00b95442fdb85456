"""Forward data-flow analysis: what is known of the variables before and after each statement.

A pass gives the transfer function (what one statement does to an environment) and the join of two
values. This file walks branches, loops until a fixed point, ``break``, ``continue`` and ``return``.
Does not cover: backward analysis (``liveness``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tlmem.compiler import ir
from tlmem.compiler.walking import LOOPS

Env = dict[str, Any]
"""Variable -> what is known of it. A variable without a value is not in it. Never changed."""
Transfer = Callable[[ir.Statement, Env], Env]
Join = Callable[[Any, Any], Any]


@dataclass
class Flow:
    """What was found.

    Attributes:
        before: number of a statement -> environment before it; of a loop, before each turn. What
            can never be reached is not in it.
        after: number -> environment behind it, where it is reached.
        returns: numbers of the statements that return, in the order of the program.
        end: environment at the end of the body; None when it is never reached.
    """

    before: dict[int, Env] = field(default_factory=dict)
    after: dict[int, Env] = field(default_factory=dict)
    returns: list[int] = field(default_factory=list)
    end: Env | None = None


def walked(function: ir.Function, arguments: Env, transfer: Transfer, join: Join) -> Flow:
    """Walks over a numbered function.

    Args:
        arguments: the environment at its begin.
        transfer: the environment behind a statement that is neither ``If`` nor ``While``; of a
            ``For``, the one at the begin of a turn.
        join: what is known of a value that is one of two. It must come to an end: joined again and
            again, a value does not change for ever.
    """
    walk = _Walk(transfer, join)
    walk.found.end = walk.block(function.body, arguments)
    walk.found.returns = sorted(set(walk.found.returns))
    return walk.found


def met(one: Env | None, other: Env | None, join: Join) -> Env | None:
    """The environment where two ways meet; None is a way that is never gone."""
    if one is None or other is None:
        return other if one is None else one
    shared = {name: join(one[name], other[name]) for name in one.keys() & other.keys()}
    return {**one, **other, **shared}


class _Walk:
    """One walk: what was found so far, and where ``break`` and ``continue`` go."""

    def __init__(self, transfer: Transfer, join: Join) -> None:
        self.transfer, self.join = transfer, join
        self.found = Flow()
        self.left: list[Env | None] = []  # per loop: where its breaks meet
        self.again: list[Env | None] = []  # where its continues meet

    def block(self, block: ir.Block, env: Env | None) -> Env | None:
        for statement in block:
            if env is None:
                return None
            env = self.statement(statement, env)
        return env

    def statement(self, statement: ir.Statement, env: Env) -> Env | None:
        self.found.before[statement.number] = env
        after = self.behind(statement, env)
        if after is not None:
            self.found.after[statement.number] = after
        return after

    def behind(self, statement: ir.Statement, env: Env) -> Env | None:
        if isinstance(statement, ir.If):
            then = self.block(statement.then, env)
            return met(then, self.block(statement.orelse, env), self.join)
        if isinstance(statement, LOOPS):
            return self.loop(statement, env)
        if isinstance(statement, ir.Break):
            self.left[-1] = met(self.left[-1], env, self.join)
            return None
        if isinstance(statement, ir.Continue):
            self.again[-1] = met(self.again[-1], env, self.join)
            return None
        if isinstance(statement, ir.Return):
            self.found.returns.append(statement.number)
            return None
        return None if isinstance(statement, ir.Raise) else self.transfer(statement, env)

    def loop(self, loop: ir.Statement, env: Env) -> Env | None:
        """Behind a loop: after its last turn, or after a break."""
        head = env
        while True:
            self.found.before[loop.number] = head
            self.left.append(None)
            self.again.append(None)
            exhausted, end = self.turn(loop, head)
            left, again = self.left.pop(), self.again.pop()
            latch = met(end, again, self.join)
            new = met(head, latch, self.join)
            if new is None or new == head:
                return met(exhausted, left, self.join)
            head = new

    def turn(self, loop: ir.Statement, head: Env) -> tuple[Env | None, Env | None]:
        """Where a loop is left from its head, and the end of one turn."""
        if isinstance(loop, ir.While):
            tested = self.block(loop.condition, head)
            return tested, self.block(loop.body, tested)
        assert isinstance(loop, ir.For)
        return head, self.block(loop.body, self.transfer(loop, head))
