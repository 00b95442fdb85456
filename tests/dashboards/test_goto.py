"""Where a typed text leads."""

import pytest
from tlmem.dashboards.model.goto import Destination, NoSuchPlace, go_to
from tlmem.dashboards.model.loading import Loaded


def test_seconds_are_a_moment(loaded: Loaded) -> None:
    assert go_to(" 0.5 ", loaded.recording, loaded.lanes) == Destination(500_000_000)
    for text in ("0.5 s", "500ms", "0:00.5", ".5"):
        assert go_to(text, loaded.recording, loaded.lanes) == Destination(500_000_000)


def test_an_object_is_its_birth(loaded: Loaded) -> None:
    born = int(loaded.recording.objects["born_ns"].loc[4])

    assert go_to("#4", loaded.recording, loaded.lanes) == Destination(born, 4)


def test_an_event_is_its_moment(loaded: Loaded) -> None:
    time_ns = int(loaded.recording.events["time_ns"].iloc[100])

    assert go_to("e100", loaded.recording, loaded.lanes) == Destination(time_ns)


def test_a_mark_is_known_by_its_name(loaded: Loaded) -> None:
    marks = loaded.recording.marks

    for text in ("epoch 2", "epoch:2"):
        assert go_to(text, loaded.recording, loaded.lanes).time_ns == marks["time_ns"].iloc[2]
    assert go_to("epoch", loaded.recording, loaded.lanes).time_ns == marks["time_ns"].iloc[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("99", "lasts"),
        ("-1", "nothing to go to"),
        ("nan", "nothing to go to"),
        ("1:99", "lasts"),
        ("#9999", "no object 9999"),
        ("#x", "no object x"),
        ("e999999", "no event"),
        ("lunch", "epoch 3"),
        ("", "nothing to go to"),
    ],
)
def test_anything_else_is_refused_in_a_sentence(loaded: Loaded, text: str, words: str) -> None:
    with pytest.raises(NoSuchPlace, match=words):
        go_to(text, loaded.recording, loaded.lanes)
