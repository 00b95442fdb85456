"""Chains through PyTorch's modules, optimizers and hooks in words.

``parameters in 'adapters' of 'model' (Adapted, local variable of main() at train.py:40, 584
modules)``, ``gradients of the parameters of ...``, ``state 'exp_avg' of optimizer 'opt' (Adam,
...)``.

Modules and optimizers are known by the attributes in which they keep what they have, as a class of
the program's own has no other name for that.

Covers: which steps are PyTorch's, what they hold, by which names. Does not cover: everything that
is before them, and all other chains (``chain_text``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tlmem.recording.format.chains import ChainStep, StepKind
from tlmem.units import format_count

Steps = Sequence[ChainStep]
Named = Callable[[Steps, int], tuple[str, str, list[str]]]
"""The class of the object at a position, its name in quotes, and where it has that name."""

CHILDREN, PARAMETERS, BUFFERS = "_modules", "_parameters", "_buffers"
OF_MODULES = {PARAMETERS: "parameter", BUFFERS: "buffer"}
STATE, GROUPS = "state", "param_groups"
GRADIENT = "grad"
COMPOSED = ("SparseTensor", "SparseCsrTensor")
"""Tensors that consist of others."""
UNITS = {CHILDREN: "module", **OF_MODULES}
_OF_HOOKS = (
    r"((?:full_)?(?:forward|backward)(?:_pre)?|post_accumulate_grad|optimizer_step_(?:pre|post)|"
    r"(?:load_)?state_dict(?:_pre|_post)?)_hooks"
)
_HOOKS = re.compile(f"_{_OF_HOOKS}")
_GLOBAL_HOOKS = re.compile(f"_global_{_OF_HOOKS}")
_KEY = re.compile(r"\['(.*)'\]", re.DOTALL)


@dataclass(frozen=True)
class Held:
    """What a chain holds of a module or an optimizer, which is the object at a position.

    ``path`` are the names from there on, as far as they are known; ``items`` of a ``unit`` are in
    the first container of which they are not.
    """

    at: int
    what: str
    path: tuple[str, ...] = ()
    whole: bool = False
    items: int = 0
    unit: str = ""
    optimizer: bool = field(default=False)


def torch_words(steps: Steps, named: Named) -> str:
    """What a chain keeps of a module or an optimizer; empty of a chain of another kind."""
    if len(steps) > 1 and steps[-1].kind == StepKind.OTHER and steps[-1].type in COMPOSED:
        steps = steps[:-1]  # the values or indices of a sparse tensor are meant as the whole
    last = steps[-1]
    gradient = last.kind == StepKind.INSTANCE and last.edge == GRADIENT and len(steps) > 1
    held = held_by(steps[:-1] if gradient else steps)
    if held is None:
        return ""
    plural = "" if held.whole else "s"
    words = f"{held.what}{plural}"
    if gradient:
        words = f"gradient{plural} of {'' if held.whole else 'the '}{words}"
    path = f" '{'.'.join(held.path)}'" if held.path else ""
    if held.optimizer:
        link = f"{path} of optimizer" if held.what == "state" else " in optimizer"
    else:
        link = f"{path} of" if held.whole or not held.path else f" in{path} of"
    items, unit = held.items, held.unit
    around = largest_around(steps, held.at)
    if around > items:
        items, unit = around, "item"
    count = f"{format_count(items)} {unit}{'' if items == 1 else 's'}"
    return f"{words}{link} {owner_words(steps, held.at, named, [count] if items else [])}"


def largest_around(steps: Steps, at: int) -> int:
    """The items of the largest container that the object at a position is in, by any key."""
    found = 0
    while at >= 1 and steps[at - 1].kind in (StepKind.LIST, StepKind.DICT, StepKind.TUPLE):
        at -= 1
        found = max(found, steps[at].items if steps[at].edge == "[]" else 0)
    return found


def held_by(steps: Steps) -> Held | None:
    """What of a module or an optimizer the last step holds; None where it is of neither."""
    at = optimizer_at(steps)
    if at is not None:
        return _of_optimizer(steps, at)
    if len(steps) < 2 or not _is_dict_of(steps, len(steps) - 1, tuple(OF_MODULES)):
        return None
    at = root_of(steps, len(steps) - 2)
    path: list[str] = []
    for place in range(at + 1, len(steps), 2):
        key = _KEY.fullmatch(steps[place].edge)
        if key is None:
            unit = UNITS[steps[place - 1].edge]
            what = OF_MODULES[steps[-2].edge]
            return Held(at, what, tuple(path), items=steps[place].items, unit=unit)
        path.append(key[1])
    return Held(at, OF_MODULES[steps[-2].edge], tuple(path), whole=True)


def optimizer_at(steps: Steps) -> int | None:
    """The position of an optimizer: of what has groups of parameters, or a dict of their states.

    Another object may have a ``state`` as well: a dict of dicts tells, or the name of the class.
    """
    kinds = [*(step.kind for step in steps), 0, 0]
    for at, (step, after) in enumerate(zip(steps, steps[1:], strict=False)):
        if step.kind != StepKind.INSTANCE:
            continue
        if step.edge == STATE and after.type.endswith("defaultdict"):
            if kinds[at + 2] == StepKind.DICT or "optim" in step.type.lower():
                return at
        groups = step.edge == GROUPS and after.kind == StepKind.LIST and at + 2 < len(steps)
        if groups and steps[at + 2].edge == "['params']":
            return at
    return None


def _of_optimizer(steps: Steps, at: int) -> Held:
    inner = steps[at + 2] if at + 2 < len(steps) else None
    if steps[at].edge == GROUPS:
        groups, parameters = steps[at + 1], steps[at + 3] if at + 3 < len(steps) else None
        many = groups if groups.edge == "[]" or parameters is None else parameters
        unit = "group" if many is groups else "parameter"
        return Held(at, "parameter", items=many.items, unit=unit, optimizer=True)
    items = steps[at + 1].items
    if inner is None:
        return Held(at, "parameter", items=items, unit="parameter", optimizer=True)
    key = _KEY.fullmatch(inner.edge)
    return Held(
        at,
        "state",
        (key[1],) if key else (),
        whole=key is not None,
        items=items,
        unit="parameter",
        optimizer=True,
    )


def root_of(steps: Steps, at: int) -> int:
    """The position of the outermost module that has the module at a position as a descendant."""
    while at >= 2 and _is_dict_of(steps, at - 1, (CHILDREN,)):
        at -= 2
    return at


def is_child(steps: Steps, at: int) -> bool:
    """Whether the object at a position is a module of another module."""
    return at >= 2 and _is_dict_of(steps, at - 1, (CHILDREN,))


def module_words(steps: Steps, at: int, named: Named) -> str:
    """The module at a position by its path: ``'layer1.0' of 'net' (Net, ...)``."""
    root = root_of(steps, at)
    names = [_KEY.fullmatch(steps[place].edge) for place in range(root + 1, at, 2)]
    path = ".".join(key[1] if key else "*" for key in names)
    owner = owner_words(steps, root, named)
    if not path:
        return owner
    return f"'{path}' of {owner}" if any(names) else f"a module of {owner}"


def owner_words(steps: Steps, at: int, named: Named, more: Sequence[str] = ()) -> str:
    """An object by its name, its class and place in brackets; by its class where it has no name."""
    of, name, details = named(steps, at)
    if name:
        return f"{name} ({', '.join([of, *details, *more])})"
    details = [*details, *more]
    return f"{of} ({', '.join(details)})" if details else of


def hook_at(steps: Steps, at: int) -> int | None:
    """The position of the module, tensor or optimizer of which the object at a position is a hook.

    The object is the hook itself: a function, a bound method, or what that belongs to.
    """
    if at >= 1 and steps[at - 1].kind == StepKind.METHOD:
        at -= 1
    if at >= 2 and steps[at - 1].kind == StepKind.DICT and kind_of_hook(steps[at - 2]):
        return at - 2
    return None


def kind_of_hook(step: ChainStep) -> str:
    """``forward hook``: of a step that leads to the hooks of a module; empty of another one."""
    if step.kind == StepKind.MODULE:
        found = _GLOBAL_HOOKS.fullmatch(step.edge)
    else:
        found = _HOOKS.fullmatch(step.edge) if step.kind == StepKind.INSTANCE else None
    return f"{found[1].replace('_', ' ')} hook" if found else ""


def hook_words(steps: Steps, at: int, named: Named) -> str:
    """``a forward hook of '0' of 'net' (Sequential, ...)``; ``at``: see ``hook_at``."""
    kind = kind_of_hook(steps[at])
    article = "an" if kind[:1] in "aeiou" else "a"
    return f"{article} {kind} of {_hooked_words(steps, at, named)}"


def hooks_words(steps: Steps, at: int, named: Named) -> str:
    """``the forward hooks of '0' of 'net' (...)``: of a dict of hooks; empty of anything else."""
    kind = kind_of_hook(steps[at - 1]) if at and steps[at].kind == StepKind.DICT else ""
    return f"the {kind}s of {_hooked_words(steps, at - 1, named)}" if kind else ""


def _hooked_words(steps: Steps, at: int, named: Named) -> str:
    """What has hooks: the module, tensor or optimizer at a position, or all modules."""
    if steps[at].kind == StepKind.MODULE:
        return "all modules"
    of_parameter = torch_words(steps[:at], named) if at else ""
    return of_parameter or module_words(steps, at, named)


def _is_dict_of(steps: Steps, at: int, attributes: Sequence[str]) -> bool:
    """Whether the object at a position is the dict that a module has as one of these."""
    before = steps[at - 1]
    return (
        steps[at].kind == StepKind.DICT
        and before.kind == StepKind.INSTANCE
        and before.edge in attributes
    )
