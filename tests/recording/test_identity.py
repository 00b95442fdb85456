"""Who a process is, in words."""

import pytest

from tlmem.recording.identity import LONGEST, identity


@pytest.mark.parametrize(
    ("notes", "name", "short"),
    [
        ({}, "process 7", "process 7"),
        ({"host": "b"}, "process 7 (node b)", "process 7"),
        ({"rank": "37", "host": "b"}, "rank 37 (node b, pid 7)", "rank 37"),
        ({"rank": "0"}, "rank 0 (pid 7)", "rank 0"),
        ({"worker": "gw0"}, "worker gw0 (pid 7)", "worker gw0"),
        ({"worker": "gw0", "rank": "2"}, "rank 2 (pid 7)", "rank 2"),
        ({"rank": "-1"}, "process 7", "process 7"),
        ({"rank": "9" * 19}, "process 7", "process 7"),
        ({"rank": "²"}, "process 7", "process 7"),
    ],
)
def test_a_process_is_named_by_what_its_notes_say(
    notes: dict[str, str], name: str, short: str
) -> None:
    who = identity(notes, 7)

    assert (str(who), who.short) == (name, short)


def test_a_worker_whose_name_has_brackets_keeps_them() -> None:
    assert identity({"worker": "a (b)"}, 7).short == "worker a (b)"


def test_a_name_that_is_too_long_is_cut() -> None:
    assert len(identity({"host": "x" * 10_000}, 7).host) == LONGEST


def test_ranks_come_first_then_workers_by_number_then_process_ids() -> None:
    notes = [{}, {"worker": "gw10"}, {"worker": "gw9"}, {"rank": "10"}, {"rank": "9"}]
    ordered = sorted((identity(each, 7) for each in notes), key=lambda who: who.order)

    assert [who.short for who in ordered] == [
        "rank 9",
        "rank 10",
        "worker gw9",
        "worker gw10",
        "process 7",
    ]
