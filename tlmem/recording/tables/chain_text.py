"""Chains in words: ``list 'heads' (module __main__, 300 items) through the view's base``.

Covers: one sentence part for a chain, the whole chain step by step.
Does not cover: which chains there are (``holdings``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from tlmem.recording.format.chains import ChainStep, StepKind
from tlmem.recording.tables.torch_text import (
    hook_at,
    hook_words,
    hooks_words,
    is_child,
    module_words,
    torch_words,
)
from tlmem.units import format_count

CONTAINERS = {
    StepKind.DICT: "dict",
    StepKind.LIST: "list",
    StepKind.TUPLE: "tuple",
    StepKind.SET: "set",
    StepKind.DEQUE: "deque",
    StepKind.OBJECT_ARRAY: "array of objects",
    StepKind.LRU_CACHE: "lru_cache",
}
FRAMES = (StepKind.LOCAL, StepKind.GENERATOR)
LINKS = (StepKind.INSTANCE, StepKind.EXCEPTION)
"""What can be in a list of many that each refer to the next."""
NAMING = (
    *FRAMES,
    StepKind.MODULE,
    StepKind.CLOSURE,
    StepKind.CLASS,
    StepKind.THREAD,
    StepKind.EXIT,
)
"""Roots: what they hold has a name there."""
PLAIN = ("list", "dict", "tuple", "set", "frozenset", "collections.deque", "numpy.ndarray")
"""Classes of containers that are called by a word of their own."""
ARROW = " -> "
EACH = "each "
"""Before the class of objects that are links of a chain, each of which refers to the next."""
DEFAULTS = ("__defaults__", "__kwdefaults__")
ANY_ITEM = ("", "[]")
WITH_GRAPH = ", with the autograd graph ("
"""Stands before the node of the graph that a tensor keeps."""
SEVERAL_BLOCKS = 10
"""A frame of pandas has a block for each type; with so many, one for each column that was added."""
MOST_PASSED = 3
"""Things on the way from the container to the array that are named."""
_CHANGING = re.compile(
    r"(, |(?<=\())\d[\d,]* (of at most \d[\d,]* )?"
    r"(items?|entry|entries|modules?|parameters?|buffers?|groups?)(?=\))"
    r"|(?<=\w):\d+(?=[,)]| |$)"
)


def words(steps: Sequence[ChainStep], is_tensor: bool = False) -> str:
    """What keeps an array, in words that fit behind "held by".

    Args:
        is_tensor: whether it is a tensor of PyTorch, which may be a parameter, a state, a gradient.
    """
    if not steps:
        return "something that the snapshot does not tell"
    if steps[-1].kind == StepKind.GRAPH and len(steps) > 1:
        graph = class_name(steps[-1].type)
        return f"{words(steps[:-1], is_tensor)}{WITH_GRAPH}{graph})"
    steps = _told(steps)
    if steps[0].kind == StepKind.CYCLE:
        way = turned(steps[0].edge) or class_name(steps[0].type)
        return f"a reference cycle: {way}{_passed(_ending(steps[1:]))}"
    if is_tensor and (of_torch := torch_words(steps, _class_name_and_place)):
        return of_torch
    main = main_container(steps)
    if main is not None:
        key = steps[main].edge
        what = "key" if steps[main].kind == StepKind.DICT else "item"
        first = [] if key in ANY_ITEM or steps[main].items <= 1 else [f"{what} {key[1:-1]}"]
        if _are_columns(steps, main):
            return _container(steps, main)
        return _container(steps, main) + _passed(steps[main + 1 :], first)
    last = _last_name(steps)
    if last is not None and (steps[last].edge or steps[0].kind != StepKind.OTHER):
        return _reference(steps, last + 1) + _passed(steps[last + 1 :])
    if not steps[0].type:
        return "nothing that Python shows: native code alone"
    way = _passed([step for step in steps[1:] if step.type != steps[0].type or step.edge])
    return f"{_a(class_name(steps[0].type))} that only native code holds{way}"


def container_words(steps: Sequence[ChainStep]) -> str:
    """The container that a way ends at; empty where its last step is none."""
    steps = _told(steps) if steps else []
    if not steps or steps[-1].kind not in CONTAINERS:
        return ""
    return _container(steps, len(steps) - 1)


def _told(steps: Sequence[ChainStep]) -> list[ChainStep]:
    """The steps without repetitions, such as those of a linked list, and inner parts of CPython."""
    found: list[ChainStep] = []
    for before, step in zip((None, *steps), steps, strict=False):
        repeated = step == before and step.kind in LINKS
        if repeated and step.kind == StepKind.INSTANCE and not found[-1].type.startswith(EACH):
            found[-1] = replace(step, type=EACH + step.type)
        if not repeated and not (step.kind == StepKind.OTHER and step.type.startswith("hamt")):
            found.append(step)
    return found or list(steps)


def chain_text(steps: Sequence[ChainStep], noun: str = "array") -> str:
    """The whole chain from its root, a word or two for each step, to what is held: ``noun``."""
    if steps and steps[-1].kind == StepKind.GRAPH:
        steps, noun = steps[:-1], f"tensor of {class_name(steps[-1].type)}"
    return ARROW.join([*map(_step_text, steps), noun])


def without_numbers(text: str) -> str:
    """Words without what differs from one moment to the next: numbers of items, running lines."""
    return _CHANGING.sub("", text).replace(" ()", "")


def main_container(steps: Sequence[ChainStep]) -> int | None:
    """The position of the container that tells most: the largest one, tuples only if no other is.

    Of equally large ones the outermost; in a cycle there is none.
    """
    found = [at for at, step in enumerate(steps) if step.kind in CONTAINERS]
    if not found or steps[0].kind == StepKind.CYCLE:
        return None
    return max(found, key=lambda at: (steps[at].kind != StepKind.TUPLE, steps[at].items, -at))


def bound(steps: Sequence[ChainStep]) -> int:
    """How many items the only container on the way may have that has several; 0: not known.

    Beside another container with several items it bounds nothing: that one may grow.
    """
    several = [step for step in steps if step.kind in CONTAINERS and step.items > 1]
    several = [step for step in several if step.most or step.kind != StepKind.TUPLE]
    return several[0].most if len(several) == 1 else 0


def turned(way: str) -> str:
    """The way around a cycle, begun where it comes first in the alphabet: one text for a cycle."""
    parts = way.split(ARROW)
    if len(parts) < 3 or parts[0].split(".")[0].rstrip("[]") != parts[-1]:
        return way
    turns = parts[:-1]
    first = min(range(len(turns)), key=lambda at: turns[at:] + turns[:at])
    turns = turns[first:] + turns[:first]
    return ARROW.join([*turns, turns[0].split(".")[0].rstrip("[]")])


def _ending(steps: Sequence[ChainStep]) -> Sequence[ChainStep]:
    """The last step, with the views behind it: by what an object of a cycle holds an array."""
    at = max((at for at, step in enumerate(steps) if step.kind != StepKind.VIEW), default=0)
    return steps[at:]


def class_name(name: str) -> str:
    """A class by its own name and those of the classes around it, without module and function."""
    parts = name.rpartition(".<locals>.")[2].replace("\n", " ").split(".")
    first = next((at for at, part in enumerate(parts) if part[:1].isupper()), len(parts) - 1)
    return ".".join(parts[first:])


def function_name(name: str) -> str:
    """A function by its own name and that of its class: ``load()``, ``Model.load()``."""
    parts = name.rpartition(".<locals>.")[2].replace("\n", " ").split(".")
    of_class = len(parts) > 1 and parts[-2][:1].isupper()
    return ".".join(parts[-2:] if of_class else parts[-1:]) + "()"


def base_name(file: str) -> str:
    """The last part of a path of either kind."""
    return re.split(r"[/\\]", file)[-1]


def _noun(step: ChainStep) -> str:
    """What a container is called: by its own class where it is not a plain one."""
    if step.kind == StepKind.LRU_CACHE:
        return f"lru_cache of {function_name(step.type)}"
    if step.type and step.type not in PLAIN:
        return class_name(step.type)
    return CONTAINERS[StepKind(step.kind)]


def _container(steps: Sequence[ChainStep], at: int) -> str:
    """A container with its name, where that is, and how much is in it."""
    step = steps[at]
    if hooks := hooks_words(steps, at, _class_name_and_place):
        return f"{hooks} ({format_count(step.items)} item{'' if step.items == 1 else 's'})"
    if _are_columns(steps, at):
        name, details = _name_and_place(steps, at - 2)
        frame = f"{class_name(steps[at - 2].type)} {name}".rstrip()
        return f"{frame} ({', '.join([*details, f'{format_count(step.items)} blocks of columns'])})"
    name, details = _name_and_place(steps, at)
    if step.kind == StepKind.LRU_CACHE:
        name, one, many = "", "entry", "entries"
    else:
        one, many = "item", "items"
    if step.most:
        many = f"of at most {format_count(step.most)} {many}"
        details = [*details, f"{format_count(step.items)} {many}"]
    elif step.items:
        details = [*details, f"{format_count(step.items)} {one if step.items == 1 else many}"]
    called = f"{_noun(step)} {name}".rstrip()
    return f"{called} ({', '.join(details)})" if details else called


def _class_name_and_place(steps: Sequence[ChainStep], at: int) -> tuple[str, str, list[str]]:
    """The class of the object at a position before what ``_name_and_place`` says."""
    return (class_name(steps[at].type), *_name_and_place(steps, at))


def _name_and_place(steps: Sequence[ChainStep], at: int) -> tuple[str, list[str]]:
    """The name of the object at a position, in quotes, and where it has that name."""
    if at == 0:
        return "", ["held by native code"]
    before = steps[at - 1]
    if (hooked := hook_at(steps, at - 1)) is not None and before.kind in NAMING:
        hook = hook_words(steps, hooked, _class_name_and_place)
        return f"'{before.edge}'" if before.edge else "", [_place(before), hook]
    quoted = f"'{before.edge}'" if before.edge else ""
    if before.kind == StepKind.TUPLE and at >= 2 and _holds_defaults(steps[at - 2]):
        return "", [f"default argument of {_owner(steps[at - 2])}"]
    if before.kind in CONTAINERS:
        inside, details = _name_and_place(steps, at - 1)
        key = before.edge[1:-1] if before.edge.startswith("['") else ""
        return key, [f"in {_noun(before)} {inside}".rstrip(), *details]
    if before.kind == StepKind.INSTANCE or _has_attribute(before):
        outer = _reference(steps, at - 1)
        return f"{quoted} of {_owner(before)}".lstrip(), [outer] if outer else []
    if before.kind not in NAMING:
        outer = _reference(steps, at - 1)
        return "", [f"of {_other(before)}", *([outer] if outer else [])]
    if before.kind == StepKind.THREAD and at >= 2:
        return quoted, [_place(before), _reference(steps, at - 1)]
    return quoted, [_place(before)]


def _are_columns(steps: Sequence[ChainStep], at: int) -> bool:
    """Whether a container is what a frame or series of pandas keeps its columns in."""
    if at < 2 or steps[at].kind != StepKind.TUPLE or steps[at].items < SEVERAL_BLOCKS:
        return False
    manager, frame = steps[at - 1], steps[at - 2]
    return manager.type.endswith(".BlockManager") and frame.type.startswith("pandas.")


def _holds_defaults(step: ChainStep) -> bool:
    """Whether a tuple that this holds can only be one of default arguments."""
    return step.edge in DEFAULTS or (step.type.startswith("function ") and not step.edge)


def _place(step: ChainStep) -> str:
    """What a variable of a root is: ``local variable of main() at train.py:12``."""
    function, line, file = step.code
    where = function_name(function) + (f" at {base_name(file)}:{line}" if file else "")
    if step.kind == StepKind.MODULE:
        return f"module {step.type}"
    if step.kind == StepKind.LOCAL:
        return f"local variable of {where}" if step.edge else f"on the stack of {where}"
    if step.kind == StepKind.GENERATOR:
        return f"variable of generator or coroutine {where}"
    if step.kind == StepKind.CLOSURE:
        return f"closure variable of {where}"
    if step.kind == StepKind.CLASS:
        return f"class attribute of {class_name(step.type)}"
    return "registered with atexit" if step.kind == StepKind.EXIT else "thread-local"


def _named(step: ChainStep) -> str:
    """A variable of a root by its name: ``variable 'model', module __main__``."""
    quoted = f"'{step.edge}'" if step.edge else ""
    if step.kind == StepKind.MODULE:
        return f"variable {quoted}, module {step.type}"
    if step.kind == StepKind.THREAD:
        return f"thread-local {quoted}".rstrip()
    if step.kind == StepKind.EXIT:
        return "registered with atexit"
    place = _place(step)
    if not quoted:
        return f"a value {place}" if place.startswith("on ") else f"a {place}"
    kind, _, of = place.partition(" of ")
    return f"{kind} {quoted} of {of}"


def _reference(steps: Sequence[ChainStep], at: int) -> str:
    """The object at a position by its name: ``attribute 'cache' of Model (...)``; empty at 0."""
    if at == 0:
        return ""
    before = steps[at - 1]
    if (hooked := hook_at(steps, at)) is not None:
        return hook_words(steps, hooked, _class_name_and_place)
    if is_child(steps, at):
        return module_words(steps, at, _class_name_and_place)
    if before.kind in NAMING:
        return _named(before)
    if before.kind in CONTAINERS:
        return _container(steps, at - 1)
    outer = _reference(steps, at - 1)
    name = _attribute(before) if before.kind == StepKind.INSTANCE else _other(before)
    if at == 2 and steps[0].kind == StepKind.EXIT:
        return f"{name} {outer}"
    return f"{name} ({outer})" if outer else name


def _attribute(step: ChainStep) -> str:
    if step.edge in DEFAULTS:
        return f"a default argument of {_owner(step)}"
    return f"attribute '{step.edge}' of {_owner(step)}" if step.edge else f"{_owner(step)}"


def _owner(step: ChainStep) -> str:
    """Whose attribute: the class of an instance, or a function."""
    if step.type.startswith("function "):
        return function_name(step.type.removeprefix("function "))
    if step.type.startswith(EACH):
        return EACH + class_name(step.type.removeprefix(EACH))
    return class_name(step.type) if step.type else "an object"


def _last_name(steps: Sequence[ChainStep]) -> int | None:
    """The last step that holds by a name; None when all that is known is a C object.

    Not one behind an exception: the frames of its traceback are over, so its holder is named.
    """
    wanted = (*NAMING, StepKind.INSTANCE, StepKind.EXCEPTION)
    named = [at for at, step in enumerate(steps) if step.kind in wanted]
    raised = [at for at in named if steps[at].kind == StepKind.EXCEPTION]
    named = [at for at in named if at < raised[0]] or named if raised else named
    return named[-1] if named else None


def _has_attribute(error: ChainStep) -> bool:
    """Whether it is an exception that holds by anything but its traceback."""
    return error.kind == StepKind.EXCEPTION and error.edge not in ("", "__traceback__", "tb_frame")


def _other(step: ChainStep) -> str:
    """What is neither a root nor a container nor an attribute."""
    if step.kind == StepKind.EXCEPTION:
        if step.type == "traceback":
            return "a traceback"
        if _has_attribute(step):
            return _attribute(step)
        return f"the traceback of {class_name(step.type)}"
    if step.kind == StepKind.METHOD:
        return "a partial" if step.type.endswith("partial") else "a bound method"
    if step.kind == StepKind.VIEW:
        return "the memoryview" if step.type == "memoryview" else "the view's base"
    if step.kind == StepKind.CYCLE:
        return f"a cycle of {class_name(step.type)}"
    if step.kind == StepKind.OTHER and step.type.rpartition(".")[2] == "Context":
        return "a context variable"
    if step.type.startswith("itertools."):
        return _a(step.type)  # a cycle alone would be one of references
    return _a(class_name(step.type)) if step.type else "an object of native code"


def _passed(steps: Sequence[ChainStep], first: Sequence[str] = ()) -> str:
    """What lies between a container and the array, as the end of a sentence part."""
    parts = list(first)
    for step in steps:
        part = _passing(step)
        in_pandas = bool(parts) and parts[-1].startswith("a pandas ")
        if in_pandas and (part.startswith("a pandas ") or step.kind == StepKind.TUPLE):
            continue
        if not parts or parts[-1] != part:
            parts.append(part)
    if len(parts) > MOST_PASSED:
        more = len(parts) - MOST_PASSED + 1
        parts = [*parts[: MOST_PASSED - 2], f"{more} more", parts[-1]]
    if not parts:
        return ""
    *rest, last = parts
    return f" through {', '.join(rest)} and {last}" if rest else f" through {last}"


def _passing(step: ChainStep) -> str:
    """A step on the way, in a sentence."""
    if step.type.startswith("pandas."):
        return f"a pandas {class_name(step.type)}"
    if step.kind == StepKind.INSTANCE:
        return _attribute(step)
    if step.kind in CONTAINERS:
        key = "" if step.edge in ANY_ITEM else f"item {step.edge[1:-1]} of "
        return key + _a(_noun(step))
    if step.kind == StepKind.MODULE:
        return f"variable '{step.edge}' of module {step.type}"
    return _named(step) if step.kind in NAMING else _other(step)


def _step_text(step: ChainStep) -> str:
    """A step of the full chain."""
    function, line, file = step.code
    name = step.edge or "?"
    if step.kind in FRAMES:
        kind = "generator " if step.kind == StepKind.GENERATOR else ""
        return f"{kind}{function_name(function)} at {base_name(file)}:{line}: {name}"
    if step.kind == StepKind.CLOSURE:
        return f"closure of {function_name(function)}: {name}"
    if step.kind == StepKind.MODULE:
        return f"module {step.type}: {name}"
    if step.kind == StepKind.THREAD:
        return f"thread-local: {name}"
    if step.kind == StepKind.EXIT:
        return "atexit"
    if step.kind == StepKind.CYCLE:
        return f"cycle {step.edge or class_name(step.type)}"
    if step.kind in CONTAINERS:
        return f"{_noun(step)} of {format_count(step.items)}{step.edge or '[]'}"
    if step.kind == StepKind.VIEW:
        return "memoryview" if step.type == "memoryview" else "view.base"
    if step.kind in (StepKind.INSTANCE, StepKind.CLASS):
        owner = _owner(step) if step.kind == StepKind.INSTANCE else class_name(step.type)
        return f"{owner}.{name}"
    return class_name(step.type) + (f".{step.edge}" if step.edge else "")


def _a(noun: str) -> str:
    return f"{'an' if noun[:1].lower() in 'aeio' and noun[:1] else 'a'} {noun}"
