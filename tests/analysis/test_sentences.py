"""Every sentence of a verdict, word by word: what happened, the number, what to do."""

from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from tlmem.analysis import sentences
from tlmem.analysis.growth.growing_arrays import Enlargement
from tlmem.analysis.growth.growing_sites import GrowingSite
from tlmem.analysis.growth.late_rise import Unsettled
from tlmem.analysis.growth.per_mark import Marks
from tlmem.analysis.growth.process_growth import Retained, Rise
from tlmem.analysis.lifetimes import Lifetimes
from tlmem.analysis.model import Finding, Rate, StackFrame
from tlmem.analysis.places import Places

CACHE, CALLER, MAIN, MODEL = (
    StackFrame(f"/home/user/{name}.py", line, "work")
    for name, line in (("cache", 23), ("app", 7), ("main", 3), ("model", 4))
)
PLACES = cast(Places, SimpleNamespace(frames=(CACHE, MODEL)))
SECOND = 10**9
RATE = Rate(38.7e6, 28.2e6, 71.7e6)
NO_MARKS = Marks({}, {})


def lives_of(noun: str = "array", born: Any = ()) -> Lifetimes:
    """Objects of 4.8 kB, in a run that begins 2 s after the recording."""
    times = np.asarray(born, np.int64)
    lives = SimpleNamespace(
        begin_ns=2 * SECOND,
        born=times,
        size=np.full(len(times), 4_800),
        noun=lambda group: noun,
    )
    return cast(Lifetimes, lives)


def line(group: int = 0, first_s: float = 2.0, **about: Any) -> GrowingSite:
    """4,000 of 8,000 arrays of 19.2 MB, judged 6 s after the recording began."""
    given: dict[str, Any] = {"bytes": 19_200_000, "rate": RATE, **about}
    return GrowingSite(group, 4_000, 8_000, given.pop("bytes"), round(first_s * SECOND),
                       6 * SECOND, site=2, example=0, **given)  # fmt: skip


def found(evidence: str, count: int = 400, held: int = 3_200_000) -> Finding:
    return Finding("reference-cycle", "info", count, held, evidence)


# ---- lines ----


def test_a_leak_names_its_line_first() -> None:
    assert sentences.leak(PLACES, lives_of(), NO_MARKS, [line()]) == (
        "Leak at cache.py:23: 4,000 of 8,000 arrays allocated here were never freed. 19.2 MB so "
        "far, growing 38.7 MB/s (95% CI 28.2–71.7)."
    )


def test_a_leak_counts_the_other_lines() -> None:
    text = sentences.leak(PLACES, lives_of(), NO_MARKS, [line(), line(1), line(1)])

    assert text.endswith("(95% CI 28.2–71.7). 1 more line grows.")


def test_a_finding_names_the_line_where_it_stands() -> None:
    assert sentences.growing(PLACES, lives_of("object"), NO_MARKS, line(1)) == (
        "4,000 of 8,000 objects allocated at model.py:4 were never freed. 19.2 MB so far, growing "
        "38.7 MB/s (95% CI 28.2–71.7)."
    )


def test_what_is_kept_says_since_when_and_how() -> None:
    late = line(first_s=4.0, manner="larger")

    assert sentences.kept(lives_of(), NO_MARKS, late, "here") == (
        "4,000 of 8,000 arrays allocated here were never freed, each in place of a smaller one. "
        "19.2 MB so far, growing 38.7 MB/s (95% CI 28.2–71.7) since 2.00 s."
    )


def test_objects_without_bytes_have_no_rate() -> None:
    assert sentences.gain(line(bytes=0), 0.496) == (
        "They have no bytes of their own (views, structs) and accumulated in 496 ms"
    )


def test_an_interval_from_nothing_is_an_average() -> None:
    assert sentences.gain(line(rate=Rate(38.7e6, 0.0, 71.7e6)), 4.0) == (
        "19.2 MB so far, growing 38.7 MB/s on average"
    )


def test_steps_say_what_each_of_them_keeps() -> None:
    times = np.arange(1, 101, dtype=np.int64) * SECOND
    marks = Marks({"epoch": times}, {"epoch": np.arange(100)})
    lives = lives_of(born=np.sort(np.concatenate([times + 1, times + 2])))
    growth = line(rows=np.arange(200))

    assert sentences.by_steps(lives, marks, growth) == ", 2 arrays and 9.60 kB per epoch"
    assert sentences.by_steps(lives, NO_MARKS, growth) == ""


def test_thousands_of_objects_for_each_step_are_written_out() -> None:
    times = np.arange(1, 101, dtype=np.int64) * SECOND
    marks = Marks({"epoch": times}, {"epoch": np.arange(100)})
    lives = lives_of(born=np.repeat(times + 1, 1_200))
    growth = line(rows=np.arange(120_000))

    assert sentences.by_steps(lives, marks, growth).startswith(", 1,200 arrays and ")


def test_callers_are_named_nearest_first() -> None:
    assert sentences.called_from(line(callers=(CALLER, MAIN))) == (
        ", called from app.py:7, from main.py:3,"
    )
    assert sentences.called_from(line()) == ""


def test_larger_arrays_say_from_and_to() -> None:
    rows = np.arange(1_200)
    growth = Enlargement(0, 1_200, 80_000, 9_600_000, site=2, example=0, seconds=3.5, rows=rows)

    assert sentences.larger(PLACES, growth) == (
        "Each array allocated at cache.py:23 replaces a smaller one: from 80.0 kB to 9.60 MB in "
        "1,200 steps and 3.50 s."
    )


# ---- memory outside arrays ----


def test_a_rise_says_what_kind_of_memory_it_is() -> None:
    rise = Rise("native", 7_710_000, 0.777, 3 * SECOND, Rate(9.93e6, 9.81e6, 9.99e6))
    text = (
        "Memory outside arrays and Python grew by 7.71 MB in 777 ms, 9.93 MB/s (95% CI "
        "9.81–9.99), steadily since 1.00 s and to the end: native code (a library, an extension, "
        "ctypes) keeps what it allocates."
    )

    assert sentences.rising(rise, 2 * SECOND) == text
    assert sentences.verdict_of_rise(rise, 2 * SECOND) == f"Native memory: {text}"


def test_every_kind_of_rise_has_its_words() -> None:
    heads = {
        "tape": "Leak: Records on tapes grew by 1.00 MB in 1.00 s, ",
        "driver": "Driver: Memory that devices hold beyond what live objects ever used at once ",
        "python": "Python: Python's heap grew by 1.00 MB in 1.00 s, ",
    }

    for kind, head in heads.items():
        rise = Rise(kind, 1_000_000, 1.0, SECOND, Rate(1e6, 0.9e6, 1.1e6))
        assert sentences.verdict_of_rise(rise, 0).startswith(head)


def test_what_stays_resident_says_who_keeps_it() -> None:
    kept = Retained(40_000_000, 2.0, "the C allocator keeps it")
    text = (
        "40.0 MB that the program freed stayed resident for 2.00 s: the C allocator keeps it. "
        "malloc_trim(0) of the C library gives back the whole pages that are free."
    )

    assert sentences.retained(kept) == text
    assert sentences.verdict_of_retained(kept) == f"Retained: {text}"
    assert sentences.retained_beside_growth(kept, 1_000) == []
    pool = Retained(40_000_000, 2.0, "device pools keep it")
    assert "malloc_trim" not in sentences.retained(pool)


def test_freed_memory_that_becomes_more_is_said_beside_what_grows_less() -> None:
    rise = Rise("retained", 95_000_000, 5.0, 0, Rate(19e6, 18e6, 20e6))
    kept = Retained(240_000_000, 5.0, "the C allocator keeps it", rise)
    (said,) = sentences.retained_beside_growth(kept, 2_000_000)

    assert said == (
        "Larger is what it leaves behind: 240 MB that the program freed is still resident, and "
        "becomes more: 95.0 MB in 5.00 s, 19.0 MB/s (95% CI 18.0–20.0), steadily to the end. The C "
        "allocator keeps it: it cannot give back pages on which small blocks are in use. "
        "malloc_trim(0) of the C library gives back the whole pages that are free."
    )
    assert sentences.retained_beside_growth(kept, 100_000_000) == []


# ---- no leak ----


def test_stable_says_what_the_run_could_have_shown() -> None:
    assert sentences.stable(8.5, 46_000.0) == (
        "No leak found in 8.50 s. Smallest leak this run could have shown: 20 arrays from one line "
        "(10 with 100 kB together), or 46.0 kB/s of native memory."
    )
    assert sentences.stable(8.5, 46_000.0, 1_200_000.0).endswith(
        "together), 46.0 kB/s of native memory, or 1.20 MB/s of Python objects."
    )
    assert sentences.stable(8.5, None) == "No leak found in 8.50 s."


def test_garbage_is_added_up() -> None:
    assert sentences.waiting([found(""), found("", 600, 800_000)]) == [
        "1,000 arrays of 4.00 MB in reference cycles wait for Python's garbage collector, which is "
        "on."
    ]
    assert sentences.waiting([]) == []


# ---- cannot judge ----


def test_missing_events_ask_for_another_recording() -> None:
    assert sentences.missing(1_200) == (
        "1,200 events are missing from the middle of the recording, and what seems alive may have "
        "been freed there. Record the program again."
    )


def test_lost_events_ask_for_more_room() -> None:
    rest = (
        "so an object that seems alive may have been freed. Give the recording more room and run "
        "it again."
    )

    assert sentences.lost(7, "the disk is full") == (
        f"7 events were lost because the disk is full, {rest}"
    )
    assert sentences.lost(7, "") == f"7 events were lost, {rest}"


def test_damage_is_named() -> None:
    assert sentences.damaged("one block does not decode") == (
        "no line grows in what could be read, but parts of the recording are missing: one block "
        "does not decode."
    )


def test_unclear_garbage_asks_for_snapshots() -> None:
    assert sentences.unclear(found("400 arrays are garbage at the end.")) == (
        "400 arrays are garbage at the end. Run it for longer, or call tlmem.mark() or "
        "tlmem.snapshot() in its loop."
    )


def test_a_cache_that_fills_asks_for_time() -> None:
    assert sentences.filling(found("It is not full.")) == "It is not full. Run it for longer."


def test_what_libraries_map_is_named_where_it_rose() -> None:
    assert sentences.stable(2.55, 178e3, 2.97e6, 5.9e6) == (
        "No leak found in 2.55 s. Smallest leak this run could have shown: 20 arrays from one line "
        "(10 with 100 kB together), 178 kB/s of native memory, 5.90 MB/s of memory that libraries "
        "map for themselves, or 2.97 MB/s of Python objects."
    )


def test_what_still_rises_asks_for_time() -> None:
    assert sentences.unsettled(Unsettled("python", 32_000_000, 0.0603)) == (
        "Python's heap rose by 32.0 MB in the last 60.3 ms and to the end, too briefly to tell a "
        "leak from a result that is computed last. Run it for longer."
    )
