"""What the tape promises: S23, S24, S32 to S35, S54 to S56, S58 to S61, S64 to S67.

The bytes that ops save (S57), the policies (S62) and use counts (S63) are in
``test_tape_memory_promises.py``.
"""

from collections import Counter

import pytest
from runtime.trace import live_objects, statistics

import tlmem
from tlmem.runtime import core


def leaf(*values: float) -> tlmem.Tensor:
    return tlmem.tensor(list(values), requires_grad=True)


# ---- S23: no struct-style retains ----


def test_s23_reading_and_copying_a_variable_adds_no_count(trace) -> None:
    x = leaf(1, 2)

    with trace(x=x) as t:
        y = x
        kept = [x, y, {"x": x}]
        assert x.tolist() == [1.0, 2.0]
        del y, kept

    assert t.rows() == []
    assert x.count == 1


def test_s23_only_the_tape_acquires_and_each_count_that_was_taken_is_given_back(trace) -> None:
    board = tlmem.full((8, 8), 0.1, requires_grad=True)
    with trace(board=board) as t:
        p = tlmem.softmax(board, 1)
        loss = ((p.sum(0) - 1) ** 2).sum() + 0.05 * (p * (1 - p)).sum()
        loss.backward()
        del p, loss
        tlmem.clear_grads()

    taken, given = Counter(), Counter()
    for kind, name, holder, _ in t.rows("ACQUIRE", "REGISTER", "RELEASE", "UNREGISTER"):
        (taken if kind in ("ACQUIRE", "REGISTER") else given)[name, holder] += 1
    assert taken == given
    assert {holder for _, _, holder, _ in t.rows("ACQUIRE")} == {"tape"}


# ---- S24: gradients are cleared where an iteration ends ----


def test_s24_no_gradient_is_left_where_an_iteration_begins() -> None:
    x = leaf(3)
    found = []

    for step in tlmem.steps(4):
        found.append(x.grad)
        (x * x).sum().backward()
        assert x.grad.tolist() == [6.0]
        if step == 1:
            continue

    assert found == [None] * 4
    assert x.grad is None


def test_s24_gradients_that_were_there_before_the_first_iteration_are_the_programs() -> None:
    x = leaf(3)
    (x * x).sum().backward()

    for step in tlmem.steps(2):
        assert (step, x.grad is None) == (step, step > 0)

    (x * x).sum().backward()
    for _ in tlmem.steps(0):
        pass
    assert x.grad.tolist() == [6.0]


def test_s24_gradients_stay_after_break_and_with_the_opt_out() -> None:
    x = leaf(3)

    for _ in tlmem.steps(4):
        (x * x).sum().backward()
        break
    assert x.grad.tolist() == [6.0]

    for _ in tlmem.steps(2, clear_grads=False):
        (x * x).sum().backward()
    assert x.grad.tolist() == [18.0]


def test_s24_every_gradient_is_cleared_the_oldest_and_the_newest() -> None:
    with tlmem.Tape("s24") as tape:
        x = leaf(3)
        y = x * x
        z = y * 2
        for each in (y, z):
            each.retain_grad()
        z.backward(tlmem.ones(1))
        assert [each.grad is None for each in (x, y, z)] == [False] * 3

        assert tape.clear_grads() == 3
        assert [each.grad is None for each in (x, y, z)] == [True] * 3


def test_s24_a_loop_that_clears_does_not_grow(trace) -> None:
    x = tlmem.full((1000,), 0.5, requires_grad=True)
    live = []

    for _ in tlmem.steps(5):
        live.append(statistics().current_bytes)
        (x * x).sum().backward()

    assert len(set(live)) == 1


# ---- S32: the graph keeps what it needs, and no more ----


def test_s32_release_before_backward_leaves_backward_correct() -> None:
    x = leaf(2, 3)
    y = x * x
    z = tlmem.exp(y * 0.1)
    total = z.sum()
    tlmem.release_safe(y)
    tlmem.release_safe(z)
    del y, z

    total.backward()

    assert x.grad.tolist() == pytest.approx([0.4 * 2.718281828**0.4, 0.6 * 2.718281828**0.9])


def test_s32_a_scope_that_ends_before_backward_leaves_backward_correct() -> None:
    x = leaf(2, 3)
    with tlmem.scope("forward"):
        total = ((x * x) * x).sum().escape()

    total.backward()

    assert x.grad.tolist() == [12.0, 27.0]


def test_s32_a_graph_that_never_sees_backward_is_reclaimed_with_its_root() -> None:
    x = leaf(2, 3)
    before = live_objects()
    y = tlmem.tanh(x * x)
    z = tlmem.exp(y).sum()
    del y
    assert tlmem.tape().stats().records == 4

    del z

    assert live_objects() == before
    assert (tlmem.tape().stats().records, tlmem.tape().stats().saved_bytes) == (0, 0)


# ---- S33, B7: the end of backward ----


def test_s33_backward_ends_the_graph_and_wipes_nothing_that_is_held() -> None:
    x = leaf(2, 3)
    y = x * x
    z = y.sum()

    z.backward()

    stats = tlmem.tape().stats()
    assert (stats.saved_bytes, stats.grads) == (0, 1)
    assert (x.tolist(), x.grad.tolist()) == ([2.0, 3.0], [4.0, 6.0])
    assert (y.tolist(), z.tolist()) == ([4.0, 9.0], 13.0)
    assert (y.grad, z.grad) == (None, None)
    del y, z
    assert tlmem.tape().stats().records == 0


def test_s33_a_gradient_that_is_asked_for_stays_and_others_do_not() -> None:
    x = leaf(2, 3)
    y = x * x
    y.retain_grad()
    z = y * 3
    z.sum().backward()

    assert (y.grad.tolist(), z.grad) == ([3.0, 3.0], None)


def test_s33_the_gradient_of_an_intermediate_result_goes_as_soon_as_its_rule_has_run(trace) -> None:
    x = tlmem.full((1000,), 0.5, requires_grad=True)
    y = x
    for _ in range(6):
        y = tlmem.sin(y)
    total = y.sum()
    with trace() as t:
        total.backward(retain_graph=True)

    live: dict[str, int] = {}
    peak = 0
    for kind, name, size, _ in t.rows("ALLOC", "FREE"):
        live[name] = size if kind == "ALLOC" else 0
        peak = max(peak, sum(live.values()))
    assert peak < 3 * x.nbytes


# ---- S34, B7: detach ----


def test_s34_detach_keeps_values_leaves_and_constants_and_frees_the_rest(trace) -> None:
    x, c = leaf(2, 3), tlmem.tensor([5.0, 7.0])
    before = live_objects()
    y = tlmem.sin(x) * c
    value = y.tolist()
    d = y.detach()
    del y

    assert d.tolist() == value
    assert (d.requires_grad, d.is_leaf) == (False, True)
    assert (x.tolist(), c.tolist()) == ([2.0, 3.0], [5.0, 7.0])
    assert tlmem.tape().stats().records == 0
    assert len(live_objects() - before) == 2  # the values, and the view that shows them
    del d
    assert live_objects() == before


def test_s34_detach_tears_down_nothing_that_others_need(trace) -> None:
    x = leaf(2, 3)
    y = tlmem.sin(x)
    z = (y * y).sum()
    with trace(y=y) as t:
        d = y.detach()
    del d, y
    z.backward()

    assert t.count("DETACH") == 1
    assert x.grad.tolist() == pytest.approx([-0.756802, -0.279415], rel=1e-5)


def test_s34_detach_leaves_its_history_to_the_tensor_it_was_called_on() -> None:
    x = leaf(2, 3)
    y = x * x
    d = y.detach()

    assert (y.requires_grad, d.requires_grad) == (True, False)
    (y * d).sum().backward()
    assert x.grad.tolist() == [2 * 2 * 4.0, 2 * 3 * 9.0]


def test_s34_a_chain_over_epochs_ends_at_each_detach() -> None:
    x = leaf(0.5, 0.25)
    sizes = []
    for _ in range(5):
        (x * x).sum().backward()
        x = (x - x.grad * 0.5).detach().requires_grad_()
        sizes.append((tlmem.tape().stats().records, tlmem.tape().stats().saved_bytes))

    assert set(sizes) == {(0, 0)}


# ---- S35 ----


def test_s35_training_runs_flat(trace) -> None:
    """N-Queens itself, with its losses, is in ``test_nqueens.py``."""
    board = tlmem.randn((8, 8), seed=3, requires_grad=True)
    boundaries = []
    for _ in tlmem.steps(30):
        p = tlmem.softmax(board, 1)
        rows = p.reshape((1, 8, 8)).sum(2)
        loss = ((p.sum(0) - 1) ** 2).sum() + (tlmem.relu(rows - 1) ** 2).sum()
        loss.backward()
        board = (board - 0.5 * board.grad).detach().requires_grad_()
        del p, rows, loss
        now = statistics()
        tape = tlmem.tape().stats()
        boundaries.append((now.current_count, now.current_bytes, tape.records, tape.leaves))
        assert tlmem.scope_depth() == 0

    assert len(set(boundaries)) == 1


# ---- S54, S55: what a tape owns, and its reset ----


def test_s54_a_step_makes_no_objects_but_its_tensors(trace) -> None:
    x = tlmem.full((10,), 0.5, requires_grad=True)
    with tlmem.Tape("s54") as tape:
        for _ in range(3):
            tlmem.sin(x * x).sum()
        capacity, own = tape.stats().capacity, tape.stats().own_bytes
        with trace() as t:
            tlmem.sin(x * x).sum()
        for _ in range(capacity):  # slots are used again
            tlmem.sin(x * x).sum()
        assert (tape.stats().capacity, tape.stats().own_bytes) == (capacity, own)

    assert t.count("ALLOC") == 3  # of three results: nothing for records, slots and rules
    assert t.count("FREE") == 3


def test_s55_reset_keeps_capacity_and_makes_every_slot_stale() -> None:
    x = leaf(2, 3)
    with tlmem.Tape("s55") as tape:
        y = tlmem.sin(x)
        (y * y).sum().backward()
        z = y * 2
        before = tape.stats()

        tape.reset()

        after = tape.stats()
        assert (after.records, after.leaves, after.grads, after.saved_bytes) == (0, 0, 0, 0)
        assert (after.capacity, after.own_bytes) == (before.capacity, before.own_bytes)
        assert x.grad is None
        for use in (lambda: y * 2, lambda: z.backward(tlmem.ones(2)), lambda: z.retain_grad()):
            with pytest.raises(tlmem.StaleSlot, match=r"float32\[2\].*detach"):
                use()
        assert y.detach().tolist() == y.tolist()


def test_s55_a_stale_slot_stays_stale_when_its_place_is_used_again() -> None:
    x = leaf(2, 3)
    with tlmem.Tape("s55") as tape:
        y = tlmem.sin(x)
        tape.reset()
        again = [tlmem.sin(x) for _ in range(10)]

        assert tape.stats().records == 10
        assert y._slot not in {each._slot for each in again}
        with pytest.raises(tlmem.StaleSlot):
            y * 2


def test_s55_a_second_identical_step_after_a_reset_allocates_nothing_more(trace) -> None:
    x = leaf(2, 3)
    with tlmem.Tape("s55") as tape:
        for _ in range(4):
            (x * x).sum().backward()
            tape.reset()
        own = tape.stats().own_bytes
        with trace() as t:
            (x * x).sum().backward()
            tape.reset()
        assert tape.stats().own_bytes == own

    assert t.count("ALLOC") == t.count("FREE")


# ---- S56: fresh slots ----


def test_s56_each_op_writes_a_slot_of_its_own() -> None:
    x = leaf(3)
    first = x
    x = x + 1
    y = x * x

    assert len({first._slot, x._slot, y._slot}) == 3
    y.sum().backward()
    assert first.grad.tolist() == [8.0]


def test_s56_what_each_record_holds_has_a_name_of_its_own() -> None:
    leaves = [leaf(number) for number in range(8)]
    kept = [tlmem.sin(each) for each in leaves for _ in range(2)]
    by_tapes = [
        holder
        for each in leaves
        for holder in core.holders_of(each.handle)
        if holder >> 56 == core.lib.TLM_HOLDER_TAPE
    ]

    assert len(kept) == len(by_tapes) == len(set(by_tapes)) == 16


def test_s56_a_slot_is_never_used_again() -> None:
    x = leaf(3)
    seen = set()
    for _ in range(100):
        y = x + 1
        assert y._slot not in seen
        seen.add(y._slot)


# ---- S58, S59: only what needs a gradient has one ----


def test_s58_constants_have_no_gradient_and_take_no_room_for_one() -> None:
    x, c = tlmem.full((10,), 2.0, requires_grad=True), tlmem.full((10,), 3.0)

    (x * c).sum().backward()

    assert (c.grad, c.requires_grad) == (None, False)
    stats = tlmem.tape().stats()
    assert (stats.grads, stats.grad_bytes) == (1, x.nbytes)


def test_s58_a_gradient_that_is_a_part_of_larger_memory_gets_memory_of_its_own() -> None:
    x, rest = tlmem.full((10,), 2.0, requires_grad=True), tlmem.ones(1000)

    (tlmem.concat([x, rest], 0) * tlmem.full((1010,), 3.0)).sum().backward()

    info = core.ffi.new("tlm_object_info *")
    core.lib.tlm_object_describe(x.grad.handle, info)
    assert (info.bytes, x.grad.tolist()) == (x.nbytes, [3.0] * 10)


def test_s58_the_bytes_of_gradients_are_those_that_are_there() -> None:
    x, y = tlmem.ones(10, requires_grad=True), tlmem.ones(20, requires_grad=True)
    seen = []
    for _ in range(2):
        (x.sum() + y.sum()).backward()
        seen.append((tlmem.tape().stats().grads, tlmem.tape().stats().grad_bytes))
        x.grad = None
        seen.append((tlmem.tape().stats().grads, tlmem.tape().stats().grad_bytes))
        tlmem.clear_grads()
        seen.append((tlmem.tape().stats().grads, tlmem.tape().stats().grad_bytes))

    assert seen == [(2, 120), (1, 80), (0, 0)] * 2


def test_s59_a_program_of_constants_records_nothing() -> None:
    before = tlmem.tape().stats().recorded
    a, b = tlmem.ones((4, 4)), tlmem.ones((4, 4))
    c = tlmem.softmax(a @ b + 1, 1)

    assert (c.requires_grad, tlmem.tape().stats().recorded) == (False, before)


def test_s59_the_core_records_nothing_in_no_grad_whoever_asks_it() -> None:
    lib, ffi = core.lib, core.ffi
    x = leaf(1, 2)
    kept = -x
    tape, found = tlmem.tape(), ffi.new("tlm_slot *")
    negative = next(n for n in range(16, 999) if ffi.string(lib.tlm_op_name(n)) == b"negative")
    slots, value = ffi.new("tlm_slot[]", [x._slot]), ffi.new("tlm_tensor *")
    record = ffi.new("tlm_record *", {"op": negative, "inputs": 1})
    record.slots, record.output = slots, value

    with tlmem.no_grad():
        assert lib.tlm_tape_record(tape._pointer, record, found) == lib.TLM_OK
    assert (found[0], tape.stats().records) == (0, 1)
    assert lib.tlm_tape_record(tape._pointer, record, found) == lib.TLM_OK
    assert (found[0] != 0, tape.stats().records) == (True, 2)
    lib.tlm_slot_release(found[0])
    del kept


def test_s59_a_mixed_program_records_exactly_what_depends_on_a_leaf() -> None:
    x, c = leaf(1, 2), tlmem.tensor([3.0, 4.0])
    before = tlmem.tape().stats().recorded
    k = c * c + 1  # constant
    y = x * k  # 1
    z = tlmem.where(y > c, y, k)  # 2
    z.sum()  # 3

    assert tlmem.tape().stats().recorded - before == 3
    assert [each.requires_grad for each in (k, y, z, y > c)] == [False, True, True, False]


def test_s59_nothing_is_recorded_in_no_grad_whatever_needs_a_gradient() -> None:
    x = leaf(1, 2)
    y = x * 2
    before = tlmem.tape().stats()

    with tlmem.no_grad():
        made = [x + y, tlmem.sin(y), (x * y).sum(), tlmem.softmax(y, 0), tlmem.concat([x, y], 0)]
        made += [y.max(0), tlmem.dropout(y, 0.5)]  # these keep more than inputs and outputs
        with tlmem.enable_grad():
            recorded = y + 1

    now = tlmem.tape().stats()
    assert (now.recorded - before.recorded, now.saved_bytes) == (1, before.saved_bytes)
    assert [each.requires_grad for each in (*made, recorded)] == [False] * 7 + [True]
    assert statistics().floating == 0
    del made, recorded
    assert tlmem.tape().stats().records == before.records


# ---- S60: zero or accumulate ----


def test_s60_gradients_add_up_within_a_backward_and_across_unless_zeroed() -> None:
    x = leaf(3)
    (x * 2 + x * 5).sum().backward()
    assert x.grad.tolist() == [7.0]
    (x * 2 + x * 5).sum().backward()
    assert x.grad.tolist() == [14.0]

    tlmem.zero_grad()
    assert x.grad.tolist() == [0.0]
    (x * 2 + x * 5).sum().backward()
    assert x.grad.tolist() == [7.0]

    tlmem.tape().reset()
    assert x.grad is None


def test_s60_a_gradient_that_the_program_has_a_name_of_is_never_written_to() -> None:
    x = leaf(3)
    (x * 2).sum().backward()
    first = x.grad
    (x * 5).sum().backward()
    second = x.grad
    assert (first.tolist(), second.tolist()) == ([2.0], [7.0])

    tlmem.zero_grad()
    assert (first.tolist(), second.tolist()) == ([2.0], [7.0])
    assert x.grad is None


def test_s60_the_core_lets_go_of_a_gradient_that_others_hold_instead_of_zeroing_it() -> None:
    x, y = leaf(3), leaf(4)
    (x * y).sum().backward()
    named, seen = x.grad, []

    @core.ffi.callback("tlm_status(*)(tlm_tensor *)")
    def zero(gradient) -> int:
        seen.append(gradient.object)
        return int(core.lib.TLM_OK)

    assert core.lib.tlm_tape_zero_grads(tlmem.tape()._pointer, zero) == 2
    assert (seen, x.grad, named.tolist()) == ([y.grad.handle], None, [4.0])


# ---- S61: values live until their last rule has run ----


def test_s61_nothing_that_is_recorded_is_freed_before_backward(trace) -> None:
    with trace() as t:
        x = leaf(1, 2)
        y = tlmem.exp(x)
        t.name(y=y)
        total = (y * y).sum()
        del y
        total.backward()
        del total, x

    kinds = [kind for kind, name in t.pairs() if kind.startswith("BACKWARD") or name == "y"]
    assert kinds.index("BACKWARD_BEGIN") < kinds.index("FREE") < kinds.index("BACKWARD_END")


# ---- S64: buffers come back, and gradients do not see what was in them ----


def test_s64_a_buffer_that_comes_back_does_not_leak_into_gradients() -> None:
    core.check(core.lib.tlm_device_policy(core.CPU, core.lib.TLM_BUFFERS_BOUNDED, 1 << 20), "set")
    try:
        x = tlmem.full((100,), 3.0, requires_grad=True)
        kept = []
        for _ in tlmem.steps(3):
            dirty = tlmem.full((100,), float("nan"))
            del dirty  # its buffer is the next one's
            x[10:20].sum().backward()
            kept.append(x.grad.sum().item())
    finally:
        core.lib.tlm_device_policy(core.CPU, core.lib.TLM_BUFFERS_DIRECT, 0)

    assert kept == [10.0] * 3


def test_s64_the_bounded_pool_serves_a_training_from_what_it_keeps_and_keeps_its_budget(
    trace,
) -> None:
    cpu, budget = core.CPU, 64 << 10
    core.check(core.lib.tlm_device_policy(cpu, core.lib.TLM_BUFFERS_BOUNDED, budget), "set")
    try:
        x = tlmem.full((1000,), 0.5, requires_grad=True)
        for _ in tlmem.steps(3):
            (x * x).sum().backward()
        with trace() as t:
            for _ in tlmem.steps(5):
                (x * x).sum().backward()
        many = [tlmem.ones(1000) for _ in range(50)]
        del many
        now = core.ffi.new("tlm_buffers_statistics *")
        core.lib.tlm_buffers_stats(cpu, now)
        assert 0 < now.free_bytes <= budget
    finally:
        core.lib.tlm_device_policy(cpu, core.lib.TLM_BUFFERS_DIRECT, 0)

    assert t.count("POOL_HIT") > 0
    assert t.count("POOL_MISS") == t.count("DEVICE_ALLOC") == 0


# ---- S65: in place ----


def test_s65_in_place_on_what_needs_a_gradient_is_refused_and_changes_nothing() -> None:
    x = leaf(1, 2)
    y = x * 2
    for target in (x, y):
        before = target.tolist()
        with pytest.raises(tlmem.InPlaceOnSaved, match=r"test_tape_promises\.py:\d+: it needs"):
            target.fill(9.0)
        with pytest.raises(tlmem.InPlaceOnSaved):
            target[0] = 9.0
        assert target.tolist() == before


def test_s65_in_place_on_what_a_rule_will_read_is_refused_and_names_both_places(trace) -> None:
    x, c = leaf(1, 2), tlmem.tensor([3.0, 4.0])
    y = x * c

    with trace(c=c) as t, pytest.raises(tlmem.InPlaceOnSaved) as caught:
        c.fill(9.0)

    places = str(caught.value).count("test_tape_promises.py:")
    assert (places, "multiply saved it" in str(caught.value)) == (3, True)
    assert c.tolist() == [3.0, 4.0]
    assert t.misuses() == [("c", "in place on saved")]
    y.sum().backward()
    c.fill(9.0)
    assert (x.grad.tolist(), c.tolist()) == ([3.0, 4.0], [9.0, 9.0])


def test_s65_a_write_without_recording_is_found_by_the_backward_that_reads_it() -> None:
    x, c = leaf(1, 2), tlmem.tensor([3.0, 4.0])
    total = (x * c).sum()
    with tlmem.no_grad():
        c.fill(9.0)

    with pytest.raises(tlmem.InPlaceOnSaved, match=r"saved at .*was written in place at .*since"):
        total.backward()
    assert x.grad is None


def test_s65_in_place_on_what_needs_no_gradient_is_allowed() -> None:
    a = tlmem.tensor([1.0, 2.0])
    a += 1
    a[0] = 5.0

    assert a.tolist() == [5.0, 3.0]


# ---- S66: one backward, unless retained ----


def test_s66_a_second_backward_raises_unless_the_graph_was_retained(trace) -> None:
    x = leaf(2)
    with trace() as t:
        once = (x * x).sum()
        t.name(once=once)
        once.backward()
        with pytest.raises(tlmem.SecondBackward, match="retain_graph=True"):
            once.backward()
        assert x.grad.tolist() == [4.0]

    assert [what for _, what in t.misuses()] == ["second backward"]


def test_s66_a_backward_through_what_another_one_has_spent_raises() -> None:
    x = leaf(2)
    shared = x * x
    one, other = shared.sum(), (shared * 3).sum()
    one.backward()

    with pytest.raises(tlmem.SecondBackward, match="retain_graph=True"):
        other.backward()
    assert x.grad.tolist() == [4.0]


def test_s66_with_retain_a_second_backward_works_and_what_is_saved_stays() -> None:
    x = leaf(2)
    kept = (x * x).sum()
    saved = tlmem.tape().stats().saved_bytes

    kept.backward(retain_graph=True)
    assert (tlmem.tape().stats().saved_bytes, x.grad.tolist()) == (saved, [4.0])
    kept.backward()

    assert (tlmem.tape().stats().saved_bytes, x.grad.tolist()) == (0, [8.0])


# ---- S67: the contract in four sentences ----


def test_s67_the_tape_owns_what_it_saved_whoever_lets_go() -> None:
    x = leaf(1, 2)
    y = tlmem.exp(x)
    z = y * y

    assert any(text.startswith("tape") for text in y.holders())
    tlmem.release_safe(y)
    assert (y.alive, z.requires_grad) == (True, True)


def test_s67_results_have_fresh_slots_values_stay_until_backward_and_reset_ends_all() -> None:
    x = leaf(1, 2)
    with tlmem.Tape("s67") as tape:
        y = tlmem.exp(x)
        z = (y * y).sum()
        assert len({x._slot, y._slot, z._slot}) == 3
        handle = y.handle
        del y
        assert core.lib.tlm_check(handle) == 0
        z.backward()
        assert handle not in live_objects()
        tape.reset()
        with pytest.raises(tlmem.StaleSlot):
            z * 2
