"""Scopes that are passed, platforms and representations: S68 to S75."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from runtime.things import Mock
from runtime.trace import live_objects, statistics

from tlmem.runtime.core import ffi, lib
from tlmem.runtime.errors import NoSuchDevice, NotInScope, UseAfterFree, WrongShape
from tlmem.runtime.ownership.representation import (
    BatchableTensorRepresentation,
    FixedShape,
    TensorRepresentation,
    _registered,
    from_batched_tensor,
    from_tensor,
    register_representation,
    tensor_shape,
    to_batched_tensor,
    to_tensor,
)
from tlmem.runtime.ownership.scope import escape, scope
from tlmem.runtime.ownership.tensor_scope import TensorPlatform, TensorScope
from tlmem.runtime.tensors.factories import empty, ones, tensor, zeros


@dataclass(frozen=True)
class Board:
    """A square board; the cells are numbers."""

    size: int
    cells: tuple[float, ...]

    @classmethod
    def of(cls, size: int, first: float = 0.0) -> "Board":
        return cls(size, tuple(first + cell for cell in range(size * size)))


@dataclass
class Sentence:
    """Of any length: it has a representation and cannot be batched."""

    words: list[int]


class SentenceRepresentation:
    def to_tensor(self, value: Sentence, scope: TensorScope):
        return tensor(value.words, "int64", scope=scope)

    def from_tensor(self, given) -> Sentence | None:
        return Sentence(given.tolist()) if given.ndim == 1 else None

    def tensor_shape(self, value: Sentence) -> tuple[int, ...]:
        return (len(value.words),)


def write(board: Board, array: np.ndarray) -> None:
    array[...] = np.reshape(board.cells, (board.size, board.size))


def read(array: np.ndarray) -> Board:
    return Board(len(array), tuple(array.ravel().tolist()))


@pytest.fixture(autouse=True)
def representations() -> Iterator[None]:
    shape_of = lambda board: (board.size, board.size)  # noqa: E731
    register_representation(Board, FixedShape((3, 3), write, read, shape_of=shape_of))
    register_representation(Sentence, SentenceRepresentation())
    yield
    del _registered[Board], _registered[Sentence]


@pytest.fixture
def root() -> Iterator[TensorScope]:
    with TensorScope("root") as made:
        yield made


# ---- S68: sub-scopes ----


def test_with_scope_frees_its_tensors_on_return_and_on_throw(root, trace) -> None:
    kept = []

    def fails(child: TensorScope) -> None:
        kept.append(empty(1, scope=child))
        raise KeyError("mine")

    with trace() as t:
        assert root.with_scope(lambda child: kept.append(empty(1, scope=child)) or 7, "batch") == 7
        with pytest.raises(KeyError, match="mine"):
            root.with_scope(fails, "batch")

    assert not any(each.alive for each in kept)
    assert (
        t.rows("SCOPE_ENTER", "SCOPE_EXIT")
        == [
            ("SCOPE_ENTER", "batch", "batch", 2),
            ("SCOPE_EXIT", "batch", 1, 0),
        ]
        * 2
    )


def test_closing_ends_open_children_first_the_newest_first(root, trace) -> None:
    with trace() as t:
        parent = root.sub_scope("parent")
        t.name(a=empty(1, scope=parent))
        for name in ("first", "second"):
            child = parent.sub_scope(name)
            t.name(**{name[0]: empty(1, scope=child)})
        parent.close()

    assert [name for _, name in t.pairs("FREE")] == ["s", "f", "a"]
    assert child.closed
    assert child.stats().frees == 1


def test_s68_scopes_that_the_core_closes_with_their_parent_end_newest_first(trace) -> None:
    def made_in(parent: int) -> int:
        found = ffi.new("uint64_t *")
        assert lib.tlm_scope_create(0, parent, found) == 0
        return int(found[0])

    with trace() as t:
        parent = made_in(0)
        first, second = made_in(parent), made_in(parent)
        inner = made_in(first)
        for name, number in (("f", first), ("s", second), ("i", inner), ("p", parent)):
            each = empty(1)
            t.name(**{name: each})
            assert lib.tlm_register_from(number, each.handle, each._holder) == 0
            each._holder = 0
        assert lib.tlm_scope_destroy(parent, ffi.NULL) == 0

    assert [name for _, name in t.pairs("FREE")] == ["s", "i", "f", "p"]


def test_s75_a_child_that_is_closed_with_its_parent_knows_what_it_did(root) -> None:
    parent = root.sub_scope("parent")
    children = [parent.sub_scope("one"), parent.sub_scope("two")]
    for count, child in enumerate(children, 1):
        for _ in range(count):
            empty(1, scope=child)
    empty(1, scope=parent)
    parent.close()

    assert [each.stats().frees for each in (*children, parent)] == [1, 2, 1]
    assert [each.stats().label for each in children] == ["one", "two"]


def test_closing_twice_is_harmless_and_a_closed_scope_takes_nothing(root) -> None:
    child = root.sub_scope("batch")
    grandchild = child.sub_scope()
    child.close()
    child.close()
    grandchild.close()
    first = statistics().current_count

    for make in (
        lambda: empty(1, scope=child),
        lambda: child.sub_scope(),
        lambda: child.register(ones(1)),
        lambda: to_tensor(Board.of(3), child),
        lambda: child.with_scope(lambda each: each),
    ):
        with pytest.raises(NotInScope):
            make()

    assert statistics().current_count == first


def test_a_tensor_used_after_its_scope_was_closed_names_the_scope(root) -> None:
    child = root.sub_scope("batch 7")
    a = ones(2, scope=child)
    child.close()

    with pytest.raises(UseAfterFree, match="scope 'batch 7'"):
        a.tolist()


def test_a_scope_that_is_passed_belongs_to_no_thread(root) -> None:
    child = root.sub_scope()
    made = []

    thread = threading.Thread(target=lambda: made.append(ones(2, scope=child)))
    thread.start()
    thread.join()
    assert made[0].tolist() == [1.0, 1.0]
    thread = threading.Thread(target=child.close)
    thread.start()
    thread.join()

    assert not made[0].alive


def test_errors_of_free_are_raised_when_the_scope_has_closed(root) -> None:
    child = root.sub_scope()
    grandchild = child.sub_scope()
    mocks = [
        child.register(Mock(error=OSError("a"))),
        grandchild.register(Mock(error=OSError("b"))),
    ]
    with pytest.raises(ExceptionGroup) as caught:
        child.close()

    assert [str(error) for error in caught.value.exceptions] == ["b", "a"]
    assert (child.closed, grandchild.closed) == (True, True)
    assert [mock.freed for mock in mocks] == [1, 1]


# ---- S69: the scope is an argument ----


def test_a_tensor_belongs_to_the_scope_that_is_passed_never_to_another(root) -> None:
    built_under = root.sub_scope("built under")
    representation = FixedShape((3, 3), write, read)
    called_with = root.sub_scope("called with")

    with scope("current"):
        a = representation.to_tensor(Board.of(3), called_with)
        b = zeros(3, scope=called_with)
    built_under.close()

    assert [text.split(" #")[0] for text in a.holders()] == ["scope 'called with'"]
    assert [text.split(" #")[0] for text in b.holders()] == ["scope 'called with'"]
    assert from_tensor(Board, a) == Board.of(3)


def test_s69_each_call_of_one_representation_uses_the_scope_of_that_call(root) -> None:
    representation = FixedShape((3, 3), write, read)
    first, second = root.sub_scope("first"), root.sub_scope("second")
    a = representation.to_tensor(Board.of(3), first)
    first.close()
    b = representation.to_tensor(Board.of(3), second)

    assert (a.alive, b.alive) == (False, True)
    assert [text.split(" #")[0] for text in b.holders()] == ["scope 'second'"]


def test_a_tensor_can_leave_the_scope_it_was_made_in(root) -> None:
    child = root.sub_scope()
    a = ones(2, scope=child)
    escape(a)
    child.close()

    assert a.tolist() == [1.0, 1.0]
    assert child.stats().escaped == 1


# ---- S70, S72: platforms ----


def test_a_platform_has_one_root() -> None:
    platform = TensorPlatform()
    root = platform.global_scope()

    assert platform.global_scope() is root
    assert platform.open_roots == 1
    platform.close()
    platform.close()
    assert (platform.open_roots, root.closed) == (0, True)


def test_with_global_scope_opens_a_root_and_a_child_and_closes_both(trace) -> None:
    platform = TensorPlatform(name="main")
    with trace() as t:
        returned = platform.with_global_scope(lambda each: to_tensor(Board.of(3), each))

    assert platform.open_roots == 0
    assert t.pairs("SCOPE_ENTER", "SCOPE_EXIT") == [
        ("SCOPE_ENTER", "main"),
        ("SCOPE_ENTER", "scope 2"),
        ("SCOPE_EXIT", "scope 2"),
        ("SCOPE_EXIT", "main"),
    ]
    with pytest.raises(UseAfterFree):
        returned.tolist()


def test_s70_with_global_scope_closes_the_root_it_opened_when_the_function_raises() -> None:
    platform = TensorPlatform(name="p70")
    kept = []

    def failing(inner: TensorScope) -> None:
        kept.append(zeros(2, scope=inner))
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        platform.with_global_scope(failing)
    assert (platform.open_roots, kept[0].alive) == (0, False)


def test_with_global_scope_leaves_a_root_that_was_open_and_what_lives_in_it() -> None:
    platform = TensorPlatform()
    weight = ones(2, scope=platform.global_scope())

    def nested(outer: TensorScope) -> None:
        a = ones(1, scope=outer)
        platform.with_global_scope(lambda inner: ones(1, scope=inner))
        assert a.alive

    platform.with_global_scope(nested)

    assert weight.alive
    platform.close()
    assert not weight.alive


def test_parameters_in_the_root_survive_batches_and_only_they_do() -> None:
    platform = TensorPlatform()
    root = platform.global_scope()
    before = live_objects()
    parameters = [ones((3, 3), scope=root), zeros(3, scope=root)]

    for step in range(10):

        def train(batch: TensorScope, step: int = step) -> None:
            to_batched_tensor([Board.of(3, step)] * 4, batch)
            zeros(100, scope=batch)

        root.with_sub_scope(train)

    assert live_objects() - before == {each.handle for each in parameters}
    platform.close()


def test_a_platform_on_a_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(NoSuchDevice, match="abacus"):
        TensorPlatform("abacus")
    with pytest.raises(NoSuchDevice, match="abacus"):
        TensorScope(device="abacus")


# ---- S71: representations ----


def test_a_value_comes_back_as_it_was(root) -> None:
    for value in (Board.of(3, 5.0), Sentence([3, 1, 4])):
        made = to_tensor(value, root)
        assert from_tensor(type(value), made) == value
        assert made.shape == tensor_shape(value)


def test_a_tensor_of_another_shape_or_dtype_is_no_value(root) -> None:
    assert from_tensor(Board, ones((2, 2), scope=root)) is None
    assert from_tensor(Board, ones((3, 3), "float64", scope=root)) is None
    assert from_tensor(Sentence, ones((2, 2), scope=root)) is None


def test_s71_a_value_that_was_read_is_the_programs_own(root) -> None:
    representation = FixedShape((2, 2), lambda value, array: np.copyto(array, value), lambda a: a)
    tensor = representation.to_tensor(np.ones((2, 2)), root)
    value = representation.from_tensor(tensor)
    (of_batch,) = representation.from_batched_tensor(
        representation.to_batched_tensor([value], root)
    )
    value += 1

    assert (tensor.tolist(), of_batch.tolist()) == ([[1, 1], [1, 1]], [[1, 1], [1, 1]])


def test_derived_types_use_the_representation_of_their_base(root) -> None:
    class Chess(Board):
        pass

    assert to_tensor(Chess(3, (0.0,) * 9), root).shape == (3, 3)


def test_what_has_no_representation_is_told_by_name(root) -> None:
    with pytest.raises(TypeError, match="register_representation.complex"):
        to_tensor(1j, root)
    with pytest.raises(TypeError, match="object.*to_tensor, from_tensor, tensor_shape"):
        register_representation(int, object())


def test_the_protocols_are_what_the_representations_here_are() -> None:
    assert isinstance(SentenceRepresentation(), TensorRepresentation)
    assert not isinstance(SentenceRepresentation(), BatchableTensorRepresentation)
    assert isinstance(FixedShape((1,), write, read), BatchableTensorRepresentation)


# ---- S73: batches ----


def test_a_batch_is_one_tensor_made_with_one_copy(root, trace) -> None:
    boards = [Board.of(3, start) for start in range(8)]
    with trace() as t:
        batch = to_batched_tensor(boards, root)
        t.name(batch=batch)

    assert batch.shape == (8, 3, 3)
    assert t.rows("ALLOC", "COPY") == [("ALLOC", "batch", 288, 1), ("COPY", "batch", 288, 0)]
    assert from_batched_tensor(Board, batch) == boards


def test_one_by_one_is_one_copy_for_each_value(root, trace) -> None:
    with trace() as t:
        for start in range(8):
            to_tensor(Board.of(3, start), root)

    assert (t.count("COPY"), t.bytes_of("COPY")) == (8, 288)


def test_a_value_of_the_wrong_size_is_refused_by_its_place_and_nothing_is_allocated(root) -> None:
    first = statistics().total_count

    with pytest.raises(WrongShape, match=r"value 2.*\[4,4\].*\[3,3\]"):
        to_batched_tensor([Board.of(3), Board.of(3), Board.of(4)], root)
    with pytest.raises(WrongShape, match=r"\[4,4\]"):
        to_tensor(Board.of(4), root)

    assert statistics().total_count == first


def test_what_cannot_be_batched_is_refused(root) -> None:
    with pytest.raises(TypeError, match="Sentence is not batchable"):
        to_batched_tensor([Sentence([1]), Sentence([2])], root)
    with pytest.raises(TypeError, match="Sentence .value 1."):
        to_batched_tensor([Board.of(3), Sentence([1])], root)
    with pytest.raises(ValueError, match="no values"):
        to_batched_tensor([], root)
    with pytest.raises(WrongShape, match="is not a batch of"):
        from_batched_tensor(Board, ones((2, 4, 4), scope=root))


def test_values_without_axes_are_batched_too(root) -> None:
    number = FixedShape((), lambda value, array: array.fill(value), lambda array: array.item())
    batch = number.to_batched_tensor([1.0, 2.0, 3.0], root)

    assert batch.tolist() == [1.0, 2.0, 3.0]
    assert number.from_batched_tensor(batch) == [1.0, 2.0, 3.0]


# ---- S74, S75 ----


@pytest.mark.parametrize("device", ["cpu", "sim-metal"])
def test_the_same_training_runs_on_every_platform_without_a_leak(device: str) -> None:
    def train(platform: TensorPlatform) -> list[float]:
        def body(root: TensorScope) -> list[float]:
            weight = ones((3, 3), scope=root)
            losses = []
            for step in range(3):

                def batch(child: TensorScope, step: int = step) -> float:
                    boards = to_batched_tensor([Board.of(3, step), Board.of(3)], child)
                    assert {boards.device, weight.device} == {platform.device}
                    with scope("operations"):
                        return (boards * weight).sum().item()

                losses.append(root.with_scope(batch))
            return losses

        return platform.with_global_scope(body)

    before = live_objects()
    assert train(TensorPlatform(device)) == [72.0, 81.0, 90.0]
    assert live_objects() == before


def test_short_and_long_form_leave_the_same_trace(root, trace) -> None:
    with trace() as short:
        root.with_sub_scope(lambda child: to_tensor(Board.of(3), child), "s")
    with trace() as long:
        child = root.sub_scope("s")
        try:
            FixedShape((3, 3), write, read).to_tensor(Board.of(3), child)
        finally:
            child.close()

    assert short.rows() == long.rows()
