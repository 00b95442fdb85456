"""Chains in words: a table of what programs look like and what is said of them."""

import pytest

from tlmem.recording.format.chains import ChainStep as Step
from tlmem.recording.tables.chain_text import (
    bound,
    chain_text,
    class_name,
    function_name,
    turned,
    without_numbers,
)
from tlmem.recording.tables.chain_text import words as words_of

MODULE, LOCAL, CLOSURE, CLASS, DICT, LIST, TUPLE, SET, DEQUE, INSTANCE, LRU = range(1, 12)
GENERATOR, EXCEPTION, VIEW, OBJECTS, METHOD, CYCLE, OTHER, THREAD, _GRAPH, EXIT = range(12, 22)
MAIN = Step(LOCAL, "main\n/home/user/train.py\n12", "losses")
MODEL = Step(MODULE, "__main__", "model")


def local(edge: str, function: str = "main", line: int = 12) -> Step:
    return Step(LOCAL, f"{function}\n/home/user/train.py\n{line}", edge)


def listed(items: int = 300, edge: str = "[]") -> Step:
    return Step(LIST, "list", edge, items)


BASE = Step(VIEW, "numpy.ndarray", "base")
TABLE: list[tuple[list[Step], str]] = [
    (
        [Step(MODULE, "__main__", "heads"), listed(), BASE],
        "list 'heads' (module __main__, 300 items) through the view's base",
    ),
    (
        [Step(MODULE, "__main__", "heads"), listed(), BASE, BASE],
        "list 'heads' (module __main__, 300 items) through the view's base",
    ),
    ([Step(MODULE, "__main__", "weights")], "variable 'weights', module __main__"),
    ([local("x"), BASE], "local variable 'x' of main() at train.py:12 through the view's base"),
    (
        [MAIN, listed()],
        "list 'losses' (local variable of main() at train.py:12, 300 items)",
    ),
    (
        [MODEL, Step(INSTANCE, "__main__.Model", "cache")],
        "attribute 'cache' of Model (variable 'model', module __main__)",
    ),
    (
        [MODEL, Step(INSTANCE, "__main__.Model", "")],
        "Model (variable 'model', module __main__)",
    ),
    (
        [
            MODEL,
            Step(INSTANCE, "pandas.DataFrame", "_mgr"),
            Step(INSTANCE, "pandas.core.internals.managers.BlockManager"),
            Step(TUPLE, "tuple", "[]", 666),
            Step(INSTANCE, "pandas.core.internals.blocks.NumpyBlock"),
            BASE,
        ],
        "DataFrame 'model' (module __main__, 666 blocks of columns)",
    ),
    (
        [local("batches"), Step(OTHER, "itertools.cycle"), listed(777), listed(2)],
        "list (of an itertools.cycle, local variable 'batches' of main() at train.py:12, 777 items)"
        " through a list",
    ),
    (
        [
            MODEL,
            Step(INSTANCE, "torch.nn.modules.linear.Linear", "_parameters"),
            Step(DICT, "dict", "['weight']", 2),
            Step(INSTANCE, "torch.nn.parameter.Parameter", "_backward_hooks"),
            Step(DICT, "collections.OrderedDict", "[]", 251),
            Step(CLOSURE, "__main__.mask.<locals>.<lambda>", "keep"),
        ],
        "the backward hooks of parameter 'weight' of 'model' (Linear, module __main__) "
        "(251 items) through closure variable 'keep' of <lambda>()",
    ),
    (
        [
            MODEL,
            Step(INSTANCE, "torch.Tensor", "_post_accumulate_grad_hooks"),
            Step(DICT, "collections.OrderedDict", "[]", 1),
            Step(CLOSURE, "__main__.watch.<locals>.hook", "seen"),
            listed(300),
        ],
        "list 'seen' (closure variable of hook(), a post accumulate grad hook of 'model' (Tensor, "
        "module __main__), 300 items)",
    ),
    (
        [
            MODEL,
            Step(INSTANCE, "torch.nn.modules.linear.Linear", "_forward_hooks"),
            Step(DICT, "collections.OrderedDict", "[]", 1),
            Step(CLOSURE, "__main__.watch.<locals>.hook", "seen"),
        ],
        "the forward hooks of 'model' (Linear, module __main__) (1 item) through closure variable "
        "'seen' of hook()",
    ),
    (
        [
            MODEL,
            Step(INSTANCE, "__main__.Model", "cache"),
            Step(DICT, "dict", "[]", 1200),
        ],
        "dict 'cache' of Model (variable 'model', module __main__, 1,200 items)",
    ),
    (
        [Step(MODULE, "__main__", "load"), Step(LRU, "__main__.load", "[]", 1200)],
        "lru_cache of load() (module __main__, 1,200 entries)",
    ),
    (
        [Step(MODULE, "__main__", "load"), Step(LRU, "__main__.load", "[]", 1)],
        "lru_cache of load() (module __main__, 1 entry)",
    ),
    (
        [Step(MODULE, "__main__", "load"), Step(LRU, "__main__.load", "[]", 7, 1280)],
        "lru_cache of load() (module __main__, 7 of at most 1,280 entries)",
    ),
    (
        [MAIN, Step(DEQUE, "collections.deque", "[]", 9, 9)],
        "deque 'losses' (local variable of main() at train.py:12, 9 of at most 9 items)",
    ),
    (
        [Step(CLASS, "__main__.Model", "load"), Step(LRU, "__main__.Model.load", "[]", 7)],
        "lru_cache of Model.load() (class attribute of Model, 7 entries)",
    ),
    (
        [Step(CLASS, "__main__.Model", "seen"), listed(40)],
        "list 'seen' (class attribute of Model, 40 items)",
    ),
    (
        [Step(CLOSURE, "__main__.counter.<locals>.step", "seen"), listed(40)],
        "list 'seen' (closure variable of step(), 40 items)",
    ),
    (
        [local("running"), Step(GENERATOR, "batches\n/home/user/data.py\n30", "kept"), listed(9)],
        "list 'kept' (variable of generator or coroutine batches() at data.py:30, 9 items)",
    ),
    (
        [
            local("queue"),
            Step(INSTANCE, "queue.Queue", "queue"),
            Step(DEQUE, "collections.deque", "[]", 12),
        ],
        "deque 'queue' of Queue (local variable 'queue' of main() at train.py:12, 12 items)",
    ),
    (
        [
            local("errors"),
            listed(2000),
            Step(EXCEPTION, "__main__.BadBatch", "__traceback__"),
            local("batch", "check", 16),
        ],
        "list 'errors' (local variable of main() at train.py:12, 2,000 items) through the "
        "traceback of BadBatch and local variable 'batch' of check() at train.py:16",
    ),
    (
        [
            local("last"),
            *[Step(EXCEPTION, "ValueError", "__cause__")] * 6,
            Step(EXCEPTION, "ValueError", "__traceback__"),
            local("data", "attempt", 7),
        ],
        "local variable 'last' of main() at train.py:12 through attribute '__cause__' of "
        "ValueError, the traceback of ValueError and local variable 'data' of attempt() at "
        "train.py:7",
    ),
    (
        [local("last"), Step(EXCEPTION, "__main__.BadBatch", "batches"), listed(9)],
        "list 'batches' of BadBatch (local variable 'last' of main() at train.py:12, 9 items)",
    ),
    (
        [
            MODEL,
            Step(INSTANCE, "__main__.Model", "error"),
            Step(EXCEPTION, "__main__.BadBatch", "__traceback__"),
            local("batch", "check", 16),
        ],
        "attribute 'error' of Model (variable 'model', module __main__) through the traceback of "
        "BadBatch and local variable 'batch' of check() at train.py:16",
    ),
    (
        [
            local("model"),
            Step(INSTANCE, "__main__.Model", "observers"),
            listed(50),
            Step(METHOD, "method", "__self__"),
            Step(INSTANCE, "__main__.Plot", "canvas"),
        ],
        "list 'observers' of Model (local variable 'model' of main() at train.py:12, 50 items) "
        "through a bound method and attribute 'canvas' of Plot",
    ),
    (
        [Step(MODULE, "__main__", "rows"), listed(500), Step(DICT, "dict", "['pixels']", 3)],
        "list 'rows' (module __main__, 500 items) through item 'pixels' of a dict",
    ),
    (
        [Step(MODULE, "__main__", "tables"), Step(DICT, "dict", "['train']", 3), listed(2)],
        "dict 'tables' (module __main__, 3 items) through key 'train' and a list",
    ),
    (
        [Step(MODULE, "__main__", "tables"), Step(DICT, "dict", "['train']", 3), listed(20)],
        "list 'train' (in dict 'tables', module __main__, 20 items)",
    ),
    (
        [
            Step(MODULE, "__main__", "config"),
            Step(DICT, "dict", "['train']", 1),
            Step(DICT, "dict", "['cache']", 1),
            Step(DICT, "dict", "[]", 60),
        ],
        "dict 'cache' (in dict 'train', in dict 'config', module __main__, 60 items)",
    ),
    (
        [Step(MODULE, "__main__", "groups"), Step(DICT, "dict", "[3]", 9), listed(80)],
        "list (in dict 'groups', module __main__, 80 items)",
    ),
    (
        [
            local("head"),
            *[Step(INSTANCE, "__main__.Node", "next")] * 6,
            Step(INSTANCE, "__main__.Node", "data"),
        ],
        "attribute 'data' of Node (attribute 'next' of each Node (local variable 'head' of main() "
        "at train.py:12))",
    ),
    (
        [
            Step(THREAD, "Context", ""),
            Step(OTHER, "Context", ""),
            Step(OTHER, "hamt", ""),
            Step(OTHER, "hamt_bitmap_node", ""),
            listed(60),
        ],
        "list (of a context variable, thread-local, 60 items)",
    ),
    (
        [
            local("suspicious"),
            listed(400),
            Step(INSTANCE, "pandas.core.frame.DataFrame", "_mgr"),
            Step(INSTANCE, "pandas.core.internals.managers.BlockManager", "blocks"),
            Step(TUPLE, "tuple", "[]", 2),
            Step(OTHER, "pandas._libs.internals.Block", ""),
        ],
        "list 'suspicious' (local variable of main() at train.py:12, 400 items) through a pandas "
        "DataFrame",
    ),
    (
        [Step(MODULE, "__main__", "grid"), Step(OBJECTS, "numpy.ndarray", "[]", 30)],
        "array of objects 'grid' (module __main__, 30 items)",
    ),
    (
        [Step(THREAD, "_thread._local", "scratch"), listed(8)],
        "list 'scratch' (thread-local, 8 items)",
    ),
    (
        [Step(MODULE, "__main__", "own"), Step(THREAD, "_thread._local", "scratch"), listed(8)],
        "list 'scratch' (thread-local, variable 'own', module __main__, 8 items)",
    ),
    ([Step(THREAD, "_thread._local", "scratch")], "thread-local 'scratch'"),
    (
        [Step(EXIT, "atexit"), Step(TUPLE, "tuple", "[0]", 2)],
        "tuple (registered with atexit, 2 items) through item 0",
    ),
    (
        [Step(EXIT, "atexit"), Step(METHOD, "method", "__self__"), Step(INSTANCE, "Client", "r")],
        "attribute 'r' of Client (a bound method registered with atexit)",
    ),
    (
        [Step(MODULE, "__main__", "bag"), Step(LIST, "__main__.Bag", "[]", 8)],
        "Bag 'bag' (module __main__, 8 items)",
    ),
    (
        [
            Step(CYCLE, "__main__.Node", "Node.parent -> Node.children[] -> Node", 3),
            Step(INSTANCE, "__main__.Node", "data"),
        ],
        "a reference cycle: Node.children[] -> Node.parent -> Node through attribute 'data' of "
        "Node",
    ),
    (
        [
            Step(CYCLE, "__main__.Node", "Node.children[] -> Node.parent -> Node", 3),
            Step(INSTANCE, "__main__.Node", "children"),
            listed(3),
            Step(INSTANCE, "__main__.Node", "data"),
            BASE,
        ],
        "a reference cycle: Node.children[] -> Node.parent -> Node through attribute 'data' of "
        "Node and the view's base",
    ),
    ([Step(CYCLE, "list", "", 1)], "a reference cycle: list"),
    ([Step(OTHER, "", "")], "nothing that Python shows: native code alone"),
    (
        [Step(OTHER, "_cyutility.memoryview", ""), Step(INSTANCE, "_cyutility.memoryview", "")],
        "a memoryview that only native code holds",
    ),
    ([Step(OTHER, "lib.Handle", "")], "a Handle that only native code holds"),
    ([Step(OTHER, "lib.Handle", ""), listed(5)], "list (of a Handle, 5 items)"),
    (
        [Step(INSTANCE, "function __main__.step", "__defaults__"), Step(TUPLE, "tuple", "[0]", 1)],
        "tuple '__defaults__' of step() (1 item)",
    ),
    (
        [
            Step(MODULE, "__main__", "step"),
            Step(INSTANCE, "function __main__.step", ""),
            Step(TUPLE, "tuple", "[0]", 1),
            listed(90),
        ],
        "list (default argument of step(), 90 items)",
    ),
    ([local("")], "a value on the stack of main() at train.py:12"),
    ([Step(77, "new.Thing", "door")], "a Thing that only native code holds"),
    ([], "something that the snapshot does not tell"),
]


@pytest.mark.parametrize("steps, expected", TABLE, ids=[text[:40] for _, text in TABLE])
def test_a_chain_is_said_in_words(steps: list[Step], expected: str) -> None:
    assert words_of(steps) == expected


@pytest.mark.parametrize("steps", [steps for steps, _ in TABLE])
def test_the_whole_chain_names_each_step_and_ends_at_the_array(steps: list[Step]) -> None:
    text = chain_text(steps)

    assert text.count(" -> ") >= len(steps)
    assert text.endswith("array")


def test_the_whole_chain_is_read_from_the_root_on() -> None:
    text = chain_text(TABLE[0][0])

    assert text == "module __main__: heads -> list of 300[] -> view.base -> array"


def test_a_long_way_is_cut_in_the_middle() -> None:
    way = [Step(INSTANCE, f"lib.Part{n}", "next") for n in range(5)]
    said = words_of([Step(MODULE, "__main__", "heads"), listed(), *way])

    assert said.endswith("through attribute 'next' of Part0, 3 more and attribute 'next' of Part4")


def test_words_without_numbers_are_the_same_at_every_moment() -> None:
    def said(items: int, line: int) -> str:
        return words_of([local("rows", line=line), listed(items), BASE])

    assert said(7, 12) != said(12_345, 40)
    assert without_numbers(said(7, 12)) == without_numbers(said(12_345, 40))
    assert without_numbers(said(1, 12)) == (
        "list 'rows' (local variable of main() at train.py) through the view's base"
    )
    assert without_numbers("deque 'a' (module b, 7 of at most 1,280 items)") == (
        "deque 'a' (module b)"
    )
    assert without_numbers("tuple '__defaults__' of step() (1 item)") == (
        "tuple '__defaults__' of step()"
    )


@pytest.mark.parametrize(
    "steps, most",
    [
        ([MAIN, Step(DEQUE, "collections.deque", "[]", 9, 20)], 20),
        ([MAIN, Step(DEQUE, "collections.deque", "[]", 9, 20), Step(TUPLE, "tuple", "[1]", 2)], 20),
        ([MAIN, listed(1), Step(DEQUE, "collections.deque", "[]", 9, 20)], 20),
        ([MAIN, listed(30), Step(DEQUE, "collections.deque", "[]", 9, 20)], 0),
        ([MAIN, Step(LRU, "__main__.load", "[]", 9, 20), listed(30)], 0),
        ([MAIN, Step(DEQUE, "collections.deque", "[]", 9)], 0),
        ([MAIN], 0),
    ],
)
def test_a_bound_counts_where_no_other_container_may_grow(steps: list[Step], most: int) -> None:
    assert bound(steps) == most


@pytest.mark.parametrize(
    "name, expected",
    [
        ("__main__.Model", "Model"),
        ("__main__.main.<locals>.Node", "Node"),
        ("lib.sub.Outer.Inner", "Outer.Inner"),
        ("lib.thing", "thing"),
        ("list", "list"),
    ],
)
def test_a_class_is_called_without_its_module(name: str, expected: str) -> None:
    assert class_name(name) == expected


@pytest.mark.parametrize(
    "name, expected",
    [
        ("__main__.load", "load()"),
        ("__main__.Model.load", "Model.load()"),
        ("__main__.make.<locals>.step", "step()"),
        ("main", "main()"),
        ("__main__.make.<locals>.<lambda>", "<lambda>()"),
    ],
)
def test_a_function_is_called_with_its_class(name: str, expected: str) -> None:
    assert function_name(name) == expected


@pytest.mark.parametrize(
    "way, expected",
    [
        ("Node.parent -> Node.children[] -> Node", "Node.children[] -> Node.parent -> Node"),
        ("B.a -> A.b -> B", "A.b -> B.a -> A"),
        ("A.b -> B.a -> A", "A.b -> B.a -> A"),
        ("list[] -> A.rows -> list", "A.rows -> list[] -> A"),
        ("Node.next -> Node", "Node.next -> Node"),
        ("A.x -> B.y -> ...", "A.x -> B.y -> ..."),
        ("", ""),
    ],
)
def test_a_cycle_reads_the_same_wherever_it_was_entered(way: str, expected: str) -> None:
    assert turned(way) == expected
