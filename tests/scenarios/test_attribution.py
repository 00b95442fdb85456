"""Programs of different kinds: where their memory and its growth went is explained."""

import warnings
from dataclasses import replace

import pytest
from tlmem.scenarios.harness import attribution
from tlmem.scenarios.harness.attribution import AttributionRow, page, programs, record

from tlmem.analysis.model import Attribution

MB = 1_000_000
SHARE = ("mapped-files", "native-blocks", "plain-python")
"""Programs that are quick; the others are recorded by ``make attribution``."""


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in SHARE],
)
def row(request: pytest.FixtureRequest) -> AttributionRow:
    return record(request.param, programs()[request.param])


def test_there_are_programs_of_many_kinds() -> None:
    assert len(programs()) >= 10
    assert set(SHARE) <= set(programs())


def test_memory_and_growth_are_explained(row: AttributionRow) -> None:
    assert row.closes, (row.parts, row.grown)


def test_growth_goes_where_the_program_sends_it(row: AttributionRow) -> None:
    """In the first run, or else in both of two more: a picture takes two questions, and a machine
    that stops the sampler between them lets the program go on meanwhile."""
    rows = [row]
    if not goes_where_it_is_sent(row):
        rows += [record(row.name, programs()[row.name]) for _ in range(2)]
        warnings.warn(f"missed in the first run: {row}", stacklevel=1)

    assert all(goes_where_it_is_sent(each) for each in rows[-2:]), rows


def goes_where_it_is_sent(row: AttributionRow) -> bool:
    grown = row.grown
    assert grown is not None
    sent = {
        "mapped-files": grown.mapped_bytes + grown.file_bytes + grown.shared_bytes,
        "native-blocks": grown.native_bytes,
        "plain-python": grown.python_bytes,
    }[row.name]
    return sent > 0.8 * grown.resident_bytes > 2 * MB


def row_of(residual: int, growth: int) -> AttributionRow:
    parts = Attribution(100 * MB, 90 * MB, other_bytes=10 * MB, known=True)
    grown = Attribution(growth, growth - residual, residual_bytes=residual, known=True)
    return AttributionRow("some-program", "It does something.", 1.5, parts, grown)


@pytest.mark.parametrize(
    ("residual", "growth", "closes"),
    [
        (1_900_000, 10 * MB, True),
        (-1_900_000, 10 * MB, True),
        (2_100_000, 10 * MB, False),
        (-2_100_000, 10 * MB, False),
        (4_900_000, 100 * MB, True),
        (5_100_000, 100 * MB, False),
    ],
)
def test_a_residual_may_be_2_mb_or_5_percent_of_the_growth(
    residual: int, growth: int, closes: bool
) -> None:
    assert row_of(residual, growth).closes == closes


def test_a_program_without_two_pictures_is_not_explained() -> None:
    row = replace(row_of(0, MB), grown=None)

    assert not row.closes
    assert "**no two moments**" in page([row])


def test_the_page_has_a_row_for_each_program_and_says_what_does_not_close() -> None:
    text = page([row_of(0, 10 * MB), replace(row_of(9 * MB, 10 * MB), name="other")])

    assert "1 of 2 explained" in text
    assert "| `some-program` | 10.0 | 10.0 |" in text
    assert "| 90.0% | **no** |" in text


def test_a_name_that_is_none_is_refused_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert attribution.main(["no-such-program"]) == 2
    assert (
        "there is no program 'no-such-program'; these are: big-imports" in capsys.readouterr().err
    )


def test_a_program_that_fails_is_named(tmp_path) -> None:
    path = tmp_path / "broken.py"
    path.write_text('"""Fails."""\nraise SystemExit(3)\n')

    with pytest.raises(attribution.ProgramFailed, match="broken could not be recorded"):
        record("broken", path)
