"""Modes of PyTorch that were left on: when they are said, and how gravely."""

import pytest

from tlmem.analysis.growth.process_growth import Rise
from tlmem.analysis.leaks.cures import fix_of
from tlmem.analysis.leaks.left_on import modes_left_on
from tlmem.analysis.model import Finding, Rate

NATIVE = Rise("native", 5_000_000, 5.0, 1_000_000_000, Rate(1e6, 9e5, 2e6))
DRIVER = Rise("driver", 5_000_000, 5.0, 1_000_000_000, Rate(1e6, 9e5, 2e6))


def modes(text: str, *rises: Rise, lines_grow: bool = False) -> list[Finding]:
    return modes_left_on({"torch.modes": text}, rises, lines_grow)


def test_nothing_is_said_without_a_note() -> None:
    assert modes_left_on({}, [NATIVE], True) == []


def test_a_profiler_that_is_on_where_native_memory_grows_is_a_warning_with_a_cure() -> None:
    (found,) = modes("looks=7 anomaly=0 anomaly_last=0 profiler=4 profiler_last=1", NATIVE)

    assert (found.kind, found.severity, found.bytes) == ("profiler-left-on", "warning", 5_000_000)
    assert found.evidence.startswith("PyTorch's profiler was on in 4 of 7 looks, and at the last")
    assert "stop() it" in fix_of(found)


@pytest.mark.parametrize("rises", [(), (DRIVER,)])
def test_where_nothing_grows_that_it_could_keep_it_is_info(rises: tuple[Rise, ...]) -> None:
    (found,) = modes("looks=1 anomaly=1 anomaly_last=1 profiler=0 profiler_last=0", *rises)

    assert (found.kind, found.severity, found.bytes) == ("anomaly-left-on", "info", 0)
    assert "was on in 1 of 1 look:" in found.evidence


def test_anomaly_mode_beside_a_growing_line_is_a_warning() -> None:
    text = "looks=2 anomaly=2 anomaly_last=1 profiler=0 profiler_last=0"

    assert [f.severity for f in modes(text, lines_grow=True)] == ["warning"]


@pytest.mark.parametrize(
    ("text", "grows", "said"),
    [
        ("looks=8 anomaly=0 anomaly_last=0 profiler=6 profiler_last=0", False, 0),
        ("looks=8 anomaly=0 anomaly_last=0 profiler=6 profiler_last=0", True, 1),
        ("looks=8 anomaly=0 anomaly_last=0 profiler=2 profiler_last=0", True, 0),
    ],
)
def test_what_was_switched_off_counts_only_where_memory_grew_meanwhile(
    text: str, grows: bool, said: int
) -> None:
    assert len(modes(text, *[NATIVE] * grows)) == said


@pytest.mark.parametrize("text", ["", "looks", "anomaly_last=x", "=1 profiler=99999999999999"])
def test_a_damaged_note_is_no_mode(text: str) -> None:
    assert modes(text, NATIVE) == []
