"""Tensors of PyTorch in scopes and pools: freed by dropping them, told what outlives a scope."""

import gc
import threading

import pytest
from runtime.trace import live_objects

import tlmem
from tlmem.runtime.errors import NotInScope, NotRegistered

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install tlmem[torch]")


def counts(scope: tlmem.Scope) -> tuple[int, int, int, int]:
    found = scope.stats()
    return found.allocations, found.frees, found.escaped, found.leaked


def test_a_scope_keeps_no_tensor_and_counts_what_it_saw_go() -> None:
    before = live_objects()
    with tlmem.scope("step") as scope:
        tlmem.register(torch.ones(3))
        kept = tlmem.register(torch.ones(4))
        assert counts(scope) == (2, 1, 0, 0)
        del kept
        assert counts(scope) == (2, 2, 0, 0)

    assert counts(scope) == (2, 2, 0, 0)
    assert live_objects() == before


def test_what_somebody_else_holds_outlives_its_scope_until_it_is_dropped() -> None:
    before, kept = live_objects(), []
    with tlmem.scope("step") as scope:
        kept.append(tlmem.register(torch.ones(3)))

    assert counts(scope) == (1, 0, 0, 1)
    assert len(live_objects()) == len(before) + 1
    assert float(kept[0].sum()) == 3.0
    kept.clear()
    assert live_objects() == before


def test_what_escaped_or_was_taken_out_does_not_count_as_leaked() -> None:
    before = live_objects()
    with tlmem.scope("step") as scope:
        escaped, taken = tlmem.register(torch.ones(3)), tlmem.register(torch.ones(4))
        passed = tlmem.register(torch.ones(5))
        assert tlmem.escape(escaped) is escaped
        assert tlmem.unregister(taken) is taken
        assert tlmem.promote(passed) is passed

    assert counts(scope) == (3, 0, 3, 0)
    with tlmem.scope("next") as following:
        assert tlmem.register(passed) is passed
    assert counts(following) == (1, 0, 0, 1)
    del escaped, taken, passed
    assert live_objects() == before


def test_a_tensor_of_a_cycle_goes_with_its_cycle() -> None:
    before = live_objects()
    with tlmem.scope("step") as scope:
        tensor = tlmem.register(torch.ones(3))
        tensor.me = tensor
        del tensor
        assert counts(scope) == (1, 0, 0, 0)
        gc.collect()
        assert counts(scope) == (1, 1, 0, 0)
    assert live_objects() == before


def test_a_tensor_that_only_autograd_keeps_is_alive() -> None:
    """PyTorch keeps the Python object of a tensor that a graph saved."""
    before = live_objects()
    weight = torch.ones(3, requires_grad=True)
    with tlmem.scope("step") as scope:
        saved = tlmem.register(torch.ones(3))
        product = weight * saved
        del saved
        assert counts(scope) == (1, 0, 0, 0)
    assert counts(scope) == (1, 0, 0, 1)
    del product
    gc.collect()
    assert live_objects() == before


def test_a_tensor_may_be_dropped_in_another_thread_while_its_scope_is_entered() -> None:
    with tlmem.scope("step") as scope:
        kept = [tlmem.register(torch.ones(3)) for _ in range(100)]
        thread = threading.Thread(target=kept.clear)
        thread.start()
        thread.join()
        assert counts(scope) == (100, 100, 0, 0)


def test_outside_any_scope_nothing_happens() -> None:
    before = live_objects()
    tensor = torch.ones(3)

    assert tlmem.register(tensor) is tensor
    assert live_objects() == before
    with pytest.raises(NotInScope, match="cannot escape Tensor"):
        tlmem.escape(tensor)
    with pytest.raises(NotRegistered, match="cannot unregister Tensor: no scope has it"):
        tlmem.unregister(tensor)


def test_a_parameter_and_an_explicit_scope() -> None:
    scope = tlmem.TensorScope("model")
    weight = scope.register(torch.nn.Parameter(torch.ones(2)))
    scope.close()

    assert scope.stats().leaked == 1
    assert weight.requires_grad


def test_a_pool_keeps_a_tensor_and_gives_the_same_one_back() -> None:
    before, pool = live_objects(), tlmem.TensorPool(name="tensors")
    with tlmem.scope("step") as scope:
        tensor = tlmem.register(torch.ones(2, 2))
        number = id(tensor)
        pool.release(tensor)
        del tensor
    assert counts(scope) == (1, 0, 1, 0)
    assert pool.keys() == ["torch.float32:[2,2]"]

    assert id(pool.acquire((2, 2), torch.float32)) == number
    assert pool.acquire((2, 2), torch.float32) is None
    assert live_objects() == before
