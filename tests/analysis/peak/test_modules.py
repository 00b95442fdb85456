"""Modules of blocks that no module allocated: gradients, weights, states of optimizers.

Node numbers are as PyTorch's: each step goes on where the one before ended.
"""

from pathlib import Path

import pytest
from support import training
from support.training import Loop

from tlmem.analysis.peak.explained import explain

UNIT = 16_384


class Net(Loop):
    """Layers of one weight each, trained; those without an output path have small outputs.

    Each layer makes ``nodes`` nodes, of which the last one allocates the output.
    """

    def __init__(self, layers: dict[str, int], nodes: int = 2, small: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.layers, self.nodes, self.small, self.node = layers, nodes, small, 0
        self.weights = {name: self.alloc(training.init(), size) for name, size in layers.items()}

    def step(self, after: int = 1) -> dict[str, int]:
        """Forward and backward; returns the gradients. ``after``: nodes outside of layers."""
        saved = {}
        for name in self.layers:
            self.node += self.nodes
            path, node = (f"Net/{name}", 2 * self.node) if name not in self.small else ("", None)
            saved[name] = (self.alloc(training.forward(), 4 * UNIT, path, node=node), self.node - 1)
        self.node += after
        gradients = {}
        for name, (output, node) in reversed(saved.items()):
            size = self.layers[name]
            gradients[name] = self.alloc(training.backward(), size, node=2 * node + 1)
            self.free(output, training.backward())
        return gradients

    def trained(self, steps: int) -> None:
        """Steps with cleared gradients in between; those of the last one stay."""
        for number in range(steps):
            gradients = self.step()
            if number < steps - 1:
                self.free_all(list(gradients.values()), training.zero_grad())


def modules(loop: Loop, folder: Path, role: str) -> dict[str, int]:
    """Bytes of a role by module at the end; those of no known module have an empty name."""
    loop.mark("end")
    found = explain(loop.recorded(folder / "a.tlm"), "end")
    of_role = next(each for each in found.roles if each.role == role)
    sums = {
        ".".join(path[1:]) if len(path) > 1 else path[0]: size for path, size in of_role.modules
    }
    rest = of_role.bytes - sum(sums.values())
    return {**sums, **({"": rest} if rest else {})}


def test_a_last_layer_with_a_small_output_is_not_the_first_layer_of_the_next_step(
    tmp_path: Path,
) -> None:
    loop = Net({"stem": UNIT, "head": 2 * UNIT}, small=("head",))
    loop.trained(3)

    assert modules(loop, tmp_path, "gradients") == {"stem": UNIT, "": 2 * UNIT}


def test_a_layer_with_a_small_output_is_not_the_layer_behind_it(tmp_path: Path) -> None:
    """It is within what has both the layer before and the layer behind it."""
    layers = {"h.0.first": UNIT, "h.0.narrow": 2 * UNIT, "h.0.wide": 3 * UNIT, "h.1": 4 * UNIT}
    loop = Net(layers, small=("h.0.narrow",))
    loop.trained(3)

    assert modules(loop, tmp_path, "gradients") == {
        "h.0.first": UNIT,
        "h.0": 2 * UNIT,
        "h.0.wide": 3 * UNIT,
        "h.1": 4 * UNIT,
    }


def test_a_gradient_that_the_node_of_a_transposed_weight_adds_up(tmp_path: Path) -> None:
    """Of a weight with two uses: the sum is allocated in the node before that of its module."""
    loop = Net({"stem": UNIT, "tied": 2 * UNIT})
    for _ in range(2):
        gradients = loop.step()
        passing = gradients.pop("tied")
        gradients["sum"] = loop.alloc(training.backward(), 2 * UNIT, node=2 * (loop.node - 3) + 1)
        loop.free(passing, training.backward())

    # Those of both steps are alive.
    assert modules(loop, tmp_path, "gradients") == {"stem": 2 * UNIT, "tied": 4 * UNIT}


@pytest.mark.parametrize("states", [1, 2, 3])
def test_weights_and_states_are_of_the_modules_of_gradients_of_their_size(
    states: int, tmp_path: Path
) -> None:
    layers = {"a": UNIT, "b": 2 * UNIT, "c": UNIT, "d": 100}
    loop = Net(layers)
    loop.free_all(list(loop.step().values()), training.zero_grad())
    for size in layers.values():
        for _ in range(states):
            loop.alloc(training.optimizer(), size)
    loop.trained(2)
    expected = {"a": UNIT, "b": 2 * UNIT, "c": UNIT, "d": 100}

    assert modules(loop, tmp_path, "weights") == expected
    assert modules(loop, tmp_path, "optimizer state") == {
        name: states * size for name, size in expected.items()
    }


def test_a_frozen_copy_does_not_double_a_module(tmp_path: Path) -> None:
    """The weights of a target network have the sizes of those that are trained."""
    loop = Net({"a": UNIT, "b": 2 * UNIT})
    for size in loop.layers.values():
        loop.alloc(training.deepcopy(of_parameter=True), size)
    loop.trained(2)

    assert modules(loop, tmp_path, "weights") == {"a": UNIT, "b": 2 * UNIT, "": 3 * UNIT}


def test_weights_that_take_the_place_of_others_have_their_module(tmp_path: Path) -> None:
    """New ones are there before the old ones go, as in ``load_state_dict(assign=True)``."""
    loop = Net({"a": UNIT, "b": 2 * UNIT})
    loop.trained(2)
    new = [loop.alloc(training.init(), size) for size in loop.layers.values()]
    loop.free_all(list(loop.weights.values()), training.at(44))
    loop.trained(2)

    assert len(new) == 2
    assert modules(loop, tmp_path, "weights") == {"a": UNIT, "b": 2 * UNIT}


def test_states_that_only_some_weights_have_are_of_no_known_module(tmp_path: Path) -> None:
    """Three for two weights: which one has two is not known."""
    loop = Net({"a": UNIT, "b": UNIT})
    loop.free_all(list(loop.step().values()), training.zero_grad())
    for _ in range(3):
        loop.alloc(training.optimizer(), UNIT)
    loop.trained(2)

    assert modules(loop, tmp_path, "optimizer state") == {"": 3 * UNIT}
    assert modules(loop, tmp_path, "weights") == {"a": UNIT, "b": UNIT}
