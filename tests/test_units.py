"""Numbers as people read and write them."""

import pytest

from tlmem.units import (
    format_bytes,
    format_count,
    format_figure,
    format_rate,
    format_seconds,
    parse_bytes,
)


@pytest.mark.parametrize(
    "value, text",
    [
        (0, "0 B"),
        (999, "999 B"),
        (999.6, "1.00 kB"),
        (4_100_000, "4.10 MB"),
        (12_345, "12.3 kB"),
        (999_499, "999 kB"),
        (999_500, "1.00 MB"),
        (-2_000, "-2.00 kB"),
        (5e30, "5000000000000 EB"),
    ],
)
def test_bytes_have_three_digits_and_an_si_unit(value: float, text: str) -> None:
    assert format_bytes(value) == text


def test_figures_have_three_digits_and_no_exponent() -> None:
    assert [format_figure(value) for value in (0.125, 2, 999.4, 999.6, 1_234.5)] == [
        "0.125",
        "2",
        "999",
        "1,000",
        "1,234",
    ]


def test_rates_and_counts() -> None:
    assert format_rate(2_100_000) == "2.10 MB/s"
    assert format_count(1998) == "1,998"


@pytest.mark.parametrize(
    "value, text",
    [
        (0.0123, "12.3 ms"),
        (0.9999, "1.00 s"),
        (1.9, "1.90 s"),
        (12.34, "12.3 s"),
        (200, "3 min 20 s"),
        (7500, "2 h 05 min"),
        (-1.5, "-1.50 s"),
        (float("nan"), "unknown"),
    ],
)
def test_durations(value: float, text: str) -> None:
    assert format_seconds(value) == text


@pytest.mark.parametrize(
    "text, value",
    [
        ("200MB", 200_000_000),
        ("1.5 GB", 1_500_000_000),
        ("64KiB", 65_536),
        ("64k", 64_000),
        ("4096", 4096),
        ("7b", 7),
    ],
)
def test_sizes_are_read_in_decimal_and_binary_units(text: str, value: int) -> None:
    assert parse_bytes(text) == value


@pytest.mark.parametrize("text", ["", "MB", "-5MB", "5 parsecs", "1e6", "0x10"])
def test_a_size_that_is_none_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="200MB"):
        parse_bytes(text)
