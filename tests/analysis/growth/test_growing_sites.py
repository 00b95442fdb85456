"""Growing lines on simulated programs: what grows is named, what only looks like it is not."""

import random
from collections import deque

import numpy as np
import pytest
from support.traces import Program, Ring

from tlmem.analysis import analyse
from tlmem.analysis.growth.growing_sites import may_grow
from tlmem.analysis.growth.robust import floor_curve, theil_sen, unevenness
from tlmem.analysis.lifetimes import NEVER


def grown_lines(program: Program) -> list[int]:
    analysis = analyse(program.recording())
    return [f.site.line for f in analysis.findings if f.kind == "growing-site"]


def outcome(program: Program) -> str:
    return analyse(program.recording()).verdict.outcome


def keep_every(program: Program, steps: int = 500, every: int = 1, size: int = 1_000) -> None:
    for step in range(steps):
        number = program.alloc(10, size)
        if step % every:
            program.free(number)
        program.temporary(20, 1_000_000)
        program.wait(1_000_000)


@pytest.mark.parametrize("every", [1, 3, 10])
def test_objects_kept_all_along_are_a_leak(every: int) -> None:
    program = Program()
    keep_every(program, 500, every)

    assert grown_lines(program) == [10]


def test_times_of_a_damaged_recording_do_not_overflow() -> None:
    """As late as 64 bits allow: the middle of two such times is not half of their sum."""
    born = np.arange(500, dtype=np.int64) + 2**62
    died = np.full(500, NEVER, np.int64)

    with np.errstate(all="raise"):
        assert may_grow(born, died)


def test_a_leak_whose_frame_unwinds_before_the_end_is_a_leak() -> None:
    program = Program()
    held = []
    for _ in range(400):
        held.append(program.alloc(10))
        program.temporary(20)
        program.wait(1_000_000)
    for number in held:
        program.free(number)
    program.temporary(30)
    program.end_ns = program.now_ns + 1_000_000
    program.wait(2_000_000)

    assert grown_lines(program) == [10]


def test_a_function_that_computes_in_place_what_it_made_first_is_judged() -> None:
    """It returns before the end, and made nothing after its first moments."""
    program = Program()
    held = [program.alloc(10, 40_000) for _ in range(12)]
    program.wait(1_000_000_000)
    for number in held:
        program.free(number)
    program.end_ns = program.now_ns + 1_000_000
    program.wait(2_000_000)

    assert outcome(program) == "stable"


@pytest.mark.parametrize("large", [1, 9])
def test_a_few_large_arrays_make_no_leak_of_tiny_results(large: int) -> None:
    """A model of 120 small parts is built at a line that has a few buffers beside them."""
    program = Program()
    for step in range(120):
        program.alloc(10, 60_000 if step < large else 16)
        program.temporary(20, 1_000_000)
        program.wait(2_000_000)

    assert (grown_lines(program), outcome(program)) == ([], "stable")


def test_large_arrays_among_many_tiny_ones_are_a_leak() -> None:
    program = Program(slowdown=20)
    for _ in range(15):
        program.alloc(10, 60_000)
        for _ in range(11):
            program.alloc(10, 16)
            program.temporary(20, 1_000_000)
            program.wait(1_000_000)

    assert grown_lines(program) == [10]


def test_a_few_big_arrays_kept_are_a_leak() -> None:
    program = Program()
    for _ in range(20):
        program.alloc(10, 5_000_000)
        for _ in range(20):
            program.temporary(20)
        program.wait(50_000_000)

    assert grown_lines(program) == [10]


def test_pauses_do_not_hide_a_leak() -> None:
    program = Program()
    for step in range(300):
        program.alloc(10)
        program.temporary(20)
        program.wait(1_000_000 if step != 100 else 2_000_000_000)

    assert grown_lines(program) == [10]


def test_a_stall_behind_the_first_objects_takes_none_of_them_off_the_count() -> None:
    program = Program()
    for step in range(300):
        program.alloc(10)
        program.temporary(20)
        program.wait(1_000_000 if step != 4 else 600_000_000)
    finding = analyse(program.recording()).findings[0]

    assert (finding.kind, finding.count) == ("growing-site", 300)


def test_a_leak_before_a_summary_over_everything_is_a_leak() -> None:
    program = Program()
    for _ in range(300):
        program.alloc(10)
        program.wait(1_000_000)
    for _ in range(600):
        program.temporary(30, 8)

    assert grown_lines(program) == [10]


@pytest.mark.parametrize("capacity", [1, 2, 16, 128, 200])
def test_a_bounded_cache_does_not_grow(capacity: int) -> None:
    program = Program()
    ring = Ring(program, 10, capacity)
    for _ in range(400):
        ring.add()
        program.temporary(20)
        program.wait(1_000_000)

    assert grown_lines(program) == []
    assert outcome(program) == "stable"


@pytest.mark.parametrize("seed", range(5))
def test_a_cache_with_random_eviction_does_not_grow(seed: int) -> None:
    program, chance, held = Program(), random.Random(seed), []
    for _ in range(600):
        held.append(program.alloc(10))
        if len(held) > 200:
            program.free(held.pop(chance.randrange(len(held))))
        program.temporary(20)
        program.wait(1_000_000)

    assert grown_lines(program) == []


@pytest.mark.parametrize("seed", range(5))
def test_a_memo_of_finitely_many_keys_is_a_warm_up(seed: int) -> None:
    program, chance, known = Program(), random.Random(seed), set()
    for _ in range(1500):
        key = chance.randrange(300)
        if key not in known:
            known.add(key)
            program.alloc(10)
        program.temporary(20)
        program.wait(500_000)

    assert grown_lines(program) == []


@pytest.mark.parametrize("teeth", [2, 3, 5, 12])
@pytest.mark.parametrize("rest", [0.0, 0.5, 0.95])
def test_a_list_that_is_emptied_now_and_then_does_not_grow(teeth: int, rest: float) -> None:
    program, length = Program(), 600 // teeth
    for tooth in range(teeth + 1):
        held = []
        for _ in range(length if tooth < teeth else int(rest * length)):
            held.append(program.alloc(10))
            program.temporary(20)
            program.wait(1_000_000)
        if tooth < teeth:
            for number in held:
                program.free(number)

    assert grown_lines(program) == []


@pytest.mark.parametrize("share", [0.1, 0.3, 0.6])
def test_what_is_loaded_first_and_kept_is_a_warm_up(share: float) -> None:
    program = Program()
    for step in range(1000):
        if step < share * 1000:
            program.alloc(10, 100_000)
        program.temporary(20)
        program.wait(500_000)

    assert grown_lines(program) == []


def test_a_model_kept_through_a_pause_is_a_warm_up() -> None:
    program = Program()
    for _ in range(50):
        program.alloc(10, 1_000_000)
        program.wait(2_000_000)
    program.wait(900_000_000)

    assert grown_lines(program) == []


def test_results_of_a_short_last_phase_do_not_grow() -> None:
    program = Program()
    for step in range(1000):
        program.temporary(20)
        if step > 850:
            program.alloc(10)
        program.wait(500_000)

    assert grown_lines(program) == []


@pytest.mark.parametrize("seed", range(5))
def test_temporaries_of_random_size_and_length_do_not_grow(seed: int) -> None:
    program, chance, held = Program(), random.Random(seed), []
    for _ in range(1000):
        held.append(program.alloc(10, chance.randrange(1, 1_000_000)))
        while held and chance.random() < 0.5:
            program.free(held.pop(chance.randrange(len(held))))
        if len(held) > 50:
            program.free(held.pop(0))
        program.wait(500_000)

    assert grown_lines(program) == []


def test_a_short_run_with_few_survivors_cannot_be_judged() -> None:
    program = Program()
    keep_every(program, 80)

    assert outcome(program) == "cannot-judge"


def test_many_survivors_are_judged_even_in_a_short_run() -> None:
    program = Program(slowdown=1)
    for _ in range(2000):
        program.alloc(10)
        program.temporary(20)

    assert program.now_ns < 0.2e9
    assert grown_lines(program) == [10]


def sessions(steps: int, life: int, slower: float = 0.0) -> Program:
    """Each step opens one, and closes those that are ``life`` steps old, or older and older."""
    program, opened = Program(), []
    for step in range(steps):
        opened.append((step, program.alloc(10)))
        program.temporary(20)
        while opened and step - opened[0][0] >= life + slower * step:
            program.free(opened.pop(0)[1])
        program.wait(1_000_000)
    return program


@pytest.mark.parametrize("life", [200, 250, 280])
def test_sessions_that_expire_are_no_leak_when_the_first_have(life: int) -> None:
    assert outcome(sessions(300, life)) == "stable"


@pytest.mark.parametrize("slower", [0.3, 0.6, 0.9])
def test_objects_that_wait_longer_and_longer_are_a_leak(slower: float) -> None:
    assert grown_lines(sessions(600, 5, slower)) == [10]


@pytest.mark.parametrize("steps", [50, 150, 190])
def test_what_is_kept_in_a_short_run_may_be_a_cache(steps: int) -> None:
    analysis = analyse(sessions(steps, 1000).recording())

    assert analysis.verdict.outcome == "cannot-judge"
    assert f"{steps} arrays allocated at program.py:10 were kept, and " in analysis.verdict.sentence
    assert "A cache that is emptied later fills like that" in analysis.verdict.sentence
    assert [found.kind for found in analysis.findings if found.kind != "live-at-end"] == [
        "filling-cache"
    ]


def test_few_large_arrays_that_are_kept_late_in_a_short_run_leave_a_doubt() -> None:
    program = Program()
    for step in range(150):
        if step % 30 == 10:
            program.alloc(10, 1_000_000)
        program.temporary(20)
        program.wait(1_000_000)
    analysis = analyse(program.recording())

    assert analysis.verdict.outcome == "cannot-judge"
    assert "tracked memory rose by 992 kB in the last 455 ms" in analysis.verdict.sentence


def test_no_objects_at_all_are_no_growth() -> None:
    program = Program()
    program.wait(1_000_000_000)

    assert outcome(program) == "stable"


def test_the_finding_says_how_many_how_much_and_how_fast() -> None:
    program = Program(slowdown=1, step_ns=0)
    for _ in range(1000):
        program.alloc(10, 2_000)
        program.wait(1_000_000)
    finding = analyse(program.recording()).findings[0]

    assert (finding.kind, finding.severity) == ("growing-site", "error")
    assert (finding.count, finding.bytes) == (1000, 2_000_000)
    assert finding.slope_bytes_per_s == pytest.approx(2e6, rel=0.01)
    assert "program.py:10" in finding.evidence
    assert "2.00 MB" in finding.evidence


def test_temporaries_of_the_last_moment_are_not_counted() -> None:
    program, held = Program(), []
    for _ in range(400):
        passing = program.alloc(10)
        held.append(program.alloc(10))
        program.free(passing)
        program.temporary(20)
        program.wait(1_000_000)
    for number in reversed(held):
        program.free(number, line=40)
    finding = analyse(program.recording()).findings[0]

    assert finding.count == 400


def test_floor_is_what_is_never_given_back() -> None:
    assert floor_curve(np.array([3, 1, 4, 2, 5])).tolist() == [1, 1, 2, 2, 5]


def test_unevenness_is_zero_for_a_line_and_large_for_a_step() -> None:
    x = np.linspace(0, 1, 1001)

    assert unevenness(x, x) < 0.01
    assert unevenness(x, (x > 0.8).astype(float)) > 0.75


def test_slope_is_not_bent_by_outliers() -> None:
    x = np.arange(1000.0)
    y = 3 * x
    y[::7] += 1e6

    assert theil_sen(x, y) == pytest.approx(3, rel=0.01)


@pytest.mark.parametrize("share", [0.3, 0.5, 0.8])
def test_a_queue_that_is_emptied_too_slowly_grows(share: float) -> None:
    program, queue, taken = Program(), [], 0
    for step in range(600):
        queue.append(program.alloc(10))
        if taken < share * step:
            program.free(queue[taken])
            taken += 1
        program.temporary(20)
        program.wait(1_000_000)

    assert grown_lines(program) == [10]


@pytest.mark.parametrize("life", [0.05, 0.3, 0.6, 0.85])
def test_a_cache_that_forgets_after_a_while_does_not_grow(life: float) -> None:
    program, held = Program(), []
    for step in range(600):
        held.append(program.alloc(10))
        if step >= life * 600:
            program.free(held[step - int(life * 600)])
        program.temporary(20)
        program.wait(1_000_000)

    assert grown_lines(program) == []


def enlarge(program: Program, sizes: list[int]) -> None:
    last = None
    for size in sizes:
        made = program.alloc(10, size)
        if last is not None:
            program.free(last)
        last = made
        program.temporary(20)
        program.wait(2_000_000)


def test_an_array_replaced_by_ever_larger_ones_is_a_warning_and_no_leak() -> None:
    program = Program()
    enlarge(program, [10_000 * step for step in range(1, 400)])
    analysis = analyse(program.recording())

    assert analysis.verdict.outcome == "stable"
    assert "replaces a smaller one" in analysis.verdict.sentence
    assert [(f.kind, f.severity) for f in analysis.findings][0] == ("growing-array", "warning")


def test_an_array_to_which_each_step_joins_what_it_made_is_a_leak() -> None:
    program = Program()
    program.join(10, 20, times=399)
    analysis = analyse(program.recording())

    assert analysis.verdict.outcome == "leak"
    assert analysis.verdict.sentence.startswith(
        "Leak at program.py:10: 1 of 399 arrays allocated here was never freed; each replaced a "
        "smaller one, to which new data were joined. 3.99 MB so far, growing "
    )
    assert "growing-array" not in [found.kind for found in analysis.findings]


def test_where_other_arrays_become_larger_too_the_problem_does() -> None:
    program = Program()
    whole, other = 0, program.alloc(40, 10_000)
    for step in range(2, 400):
        part, larger = program.alloc(20, 10_000), program.alloc(10, step * 10_000)
        another = program.alloc(40, step * 10_300)
        for each in (part, other, *([whole] if whole else [])):
            program.free(each)
        whole, other = larger, another
        program.wait(2_000_000)

    assert analyse(program.recording()).verdict.outcome == "stable"


@pytest.mark.parametrize("sizes", [[5_000_000] * 300, [*range(10_000, 5_000_000, 50_000)] * 4])
def test_arrays_of_the_same_sizes_again_and_again_are_no_warning(sizes: list[int]) -> None:
    program = Program()
    enlarge(program, sizes)

    assert [f.kind for f in analyse(program.recording()).findings] == ["live-at-end"]


def test_states_that_are_replaced_grow_from_the_first_user_on() -> None:
    """Each of a growing number of users comes again and again, and has a new state then."""
    program, states = Program(slowdown=1), deque()
    for _ in range(400):
        states.append(program.alloc(10, 8_000))
        for _ in range(2):
            states.append(program.alloc(10, 8_000))
            program.free(states.popleft())
        program.temporary(20)
        program.wait(10_000_000)
    found = analyse(program.recording()).findings
    (growth,) = [each for each in found if each.kind == "growing-site"]
    seconds = program.now_ns / 1e9

    assert growth.slope_bytes_per_s == pytest.approx(400 * 8_000 / seconds, rel=0.05)
    assert " since " not in growth.evidence
