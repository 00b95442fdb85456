"""The IR: its text, its numbers, what its statements read and define."""

import ast

from tlmem.compiler import ir, printer, walking

X, Y = ir.Var("x"), ir.Var("y")


def a_function() -> ir.Function:
    """One with a loop, a branch and an early return."""
    condition = (ir.Plain("%1", ast.parse("i < 3", mode="eval").body, ("i",)),)
    body = (
        ir.If(X, (ir.Return(ir.Group((X, Y))),), (ir.Continue(),)),
        ir.Op("y", "sum", (X,), (("axis", ir.Const(0)),), "method"),
        ir.InPlace("x", "add", Y),
    )
    loop = ir.While(condition, ir.Var("%1"), body)
    rest = (
        ir.Op("z", "concat", (ir.Group((X, ir.Captured("lib.w")), "list"),)),
        ir.Return(ir.Var("z")),
    )
    parameters = (ir.Parameter("x"), ir.Parameter("y"), ir.Parameter("i"))
    made = ir.Function("f", "f", "f.py", 1, parameters, (loop, *rest), ("lib",))
    return walking.numbered(made)


def test_text_shows_each_statement_with_its_number() -> None:
    assert printer.text(a_function()) == (
        "f(x, y, i):\n"
        "  4  while %1, computed by:\n"
        "  5    %1 = plain i < 3\n"
        "     do:\n"
        "  6    if x:\n"
        "  7      return (x, y)\n"
        "       else:\n"
        "  8      continue\n"
        "  9    y = sum x, axis=0\n"
        " 10    x = in place add y\n"
        " 11  z = concat [x, @lib.w]\n"
        " 12  return z\n"
    )


def test_arguments_are_the_first_definitions() -> None:
    function = a_function()
    assert [each.number for each in walking.walk(function.body)] == list(range(4, 13))
    assert walking.last_number(function.body[0]) == 10
    assert walking.variables(function) == ("x", "y", "i", "%1", "z")


def test_an_ownership_operation_has_the_number_of_its_statement() -> None:
    function = a_function()
    *rest, last = function.body
    body = (*rest, ir.Drop("x"), last)
    assert [each.number for each in walking.numbered(_with(function, body)).body] == [4, 11, 11, 12]


def test_reads_and_defines_are_of_the_statement_alone() -> None:
    loop, concat, last = a_function().body
    assert (walking.reads(loop), walking.defines(loop)) == (("%1",), ())
    assert (walking.reads(concat), walking.defines(concat)) == (("x",), ("z",))
    assert (walking.reads(last), walking.defines(last)) == (("z",), ())
    in_place = ir.InPlace("x", "add", Y)
    assert (walking.reads(in_place), walking.defines(in_place)) == (("x", "y"), ("x",))


def test_rebuilding_changes_inner_statements_first() -> None:
    function = a_function()
    seen = []

    def without_continue(statement: ir.Statement) -> ir.Block:
        seen.append(type(statement).__name__)
        return () if isinstance(statement, ir.Continue) else (statement,)

    made = walking.rebuilt(function.body, without_continue)
    assert seen.index("Continue") < seen.index("If") < seen.index("While")
    assert not [each for each in walking.walk(made) if isinstance(each, ir.Continue)]


def _with(function: ir.Function, body: ir.Block) -> ir.Function:
    from dataclasses import replace

    return replace(function, body=body)
