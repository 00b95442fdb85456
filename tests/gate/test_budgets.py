"""Budgets are read the same from everywhere, and nonsense is refused with key, value and a hint."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tlmem.cli.check import make_parser
from tlmem.gate import budget_kinds
from tlmem.gate.amounts import (
    BYTES,
    OBJECTS,
    PERCENT,
    TIMES,
    Amount,
    Increase,
    parse_amount,
    parse_increase,
    write,
)
from tlmem.gate.budgets import BadOptions, CheckOptions, budget, from_file, from_table, from_words


@pytest.mark.parametrize(
    "text, amount",
    [
        ("24MB", Amount(24e6, BYTES)),
        ("1.5 kB", Amount(1500, BYTES)),
        ("64 KiB", Amount(65536, BYTES)),
        ("0", Amount(0, BYTES)),
        ("100 kB/s", Amount(1e5, BYTES, "s")),
        ("100 kB per second", Amount(1e5, BYTES, "s")),
        ("6 MB/min", Amount(1e5, BYTES, "s")),
        ("1 kB per epoch", Amount(1000, BYTES, "epoch")),
        ("0.5 B per call", Amount(0.5, BYTES, "call")),
        ("1 object per epoch", Amount(1, OBJECTS, "epoch")),
        ("12 objects", Amount(12, OBJECTS)),
        ("1 kB per train step", Amount(1000, BYTES, "train step")),
    ],
)
def test_amounts_are_read(text: str, amount: Amount) -> None:
    assert parse_amount(text, (BYTES, OBJECTS), rates=True) == amount


@pytest.mark.parametrize(
    "text, kinds, why",
    [
        ("24", (BYTES,), "has no unit"),
        ("24 QB", (BYTES,), "unknown unit 'QB'"),
        ("-3 MB", (BYTES,), "is not an amount"),
        ("MB", (BYTES,), "is not an amount"),
        ("", (BYTES,), "is not an amount"),
        ("1e3 MB", (BYTES,), "is not an amount"),
        ("3 MB/s", (BYTES,), "is not a rate"),
        ("3 MB", (TIMES,), "is in bytes"),
        ("90 %", (BYTES,), "is in percent"),
        ("3.5", (TIMES,), "is not a whole number"),
    ],
)
def test_nonsense_is_no_amount(text: str, kinds: tuple[str, ...], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_amount(text, kinds, rates=False)


@given(
    st.floats(0, 1e15, allow_nan=False),
    st.sampled_from(["", "s", "epoch"]),
)
def test_an_amount_that_is_written_is_read_again(value: float, per: str) -> None:
    text = write(value, BYTES, per)

    again = parse_amount(text, (BYTES,), rates=True)

    assert again.per == per
    assert again.value == pytest.approx(value, rel=0.06, abs=0.51)


@pytest.mark.parametrize(
    "text, increase",
    [
        ("10 %", Increase(10.0)),
        ("1 MB", Increase(0.0, Amount(1e6, BYTES))),
        ("10 % + 1 MB", Increase(10.0, Amount(1e6, BYTES))),
        ("1 MB+10%", Increase(10.0, Amount(1e6, BYTES))),
    ],
)
def test_increases_have_a_share_an_amount_or_both(text: str, increase: Increase) -> None:
    assert parse_increase(text, (BYTES,)) == increase


@pytest.mark.parametrize("text", ["10 % + 5 %", "1 MB + 2 MB", "", "+", "10"])
def test_other_increases_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_increase(text, (BYTES,))


def test_every_name_that_is_listed_is_found() -> None:
    kinds = {name: budget_kinds.find(name) for name in budget_kinds.names()}

    assert [n for n, kind in kinds.items() if not (kind and kind.name == n and kind.meaning)] == []


@pytest.mark.parametrize(
    "name, value, hint",
    [
        ("pek", "3 MB", "did you mean 'peak'?"),
        ("leaks-overretained", "0", "did you mean 'leaks-over-retained'?"),
        ("misuse-doublefree", "0", "did you mean 'misuse-double-free'?"),
        ("resident_growth", "1 MB", "did you mean 'resident-growth'?"),
        ("verdict-increase", "1 MB", "there is no budget"),
        ("leaks@", "0", "there is no budget"),
        ("leaks@a.py-increase", "1 MB", "there is no budget"),
        ("peak.activation", "1 MB", "did you mean 'peak.activations'?"),
        ("peak.optimizer_state", "1 MB", "did you mean 'peak.optimizer-state'?"),
        ("peak.module@", "1 MB", "there is no budget"),
        ("peak.weights", "3 objects", "is in objects"),
        ("verdict", "stabel", "did you mean 'stable'?"),
        ("verdict", "cannot-judge", "never a pass"),
        ("pool-hit-rate", "190 %", "more than 100%"),
        ("peak", True, "not an amount"),
        ("peak", 2.5, "not an amount"),
        ("peak", ["1 MB"], "is a list"),
    ],
)
def test_a_wrong_budget_names_key_value_and_what_is_known(name, value, hint: str) -> None:
    with pytest.raises(BadOptions) as refused:
        budget(name, value, "here")

    assert str(refused.value).startswith("here: ")
    assert hint in str(refused.value)
    assert refused.value.exit_code == 2


def test_words_and_tables_say_the_same(tmp_path: Path) -> None:
    words = from_words(["peak=24 MB", "leaks@model.py=0", "verdict=stable,retained"], ["short"])
    table = {
        "peak": "24 MB",
        "leaks@model.py": 0,
        "verdict": ["stable", "retained"],
        "allow": ["short"],
    }

    found = from_table(table, "here", tmp_path)

    assert [(b.name, b.limit) for b in found.budgets] == [(b.name, b.limit) for b in words.budgets]
    assert found.allow == words.allow == {"short"}


@pytest.mark.parametrize("word", ["peak", "peak=", "=3 MB", "peak= "])
def test_a_budget_without_name_or_amount_is_refused(word: str) -> None:
    with pytest.raises(BadOptions):
        from_words([word])


def test_a_budget_that_is_given_twice_with_two_amounts_is_refused() -> None:
    with pytest.raises(BadOptions, match="given twice, as '1 MB' and as '2 MB'"):
        from_words(["peak=1 MB", "peak=2 MB"])
    assert len(from_words(["peak=1 MB", "peak=1000 kB"]).budgets) == 1


def test_a_pattern_may_have_an_equals_sign() -> None:
    (found,) = from_words(["leaks@a=b=1 MB"]).budgets

    assert (found.name, found.limit) == ("leaks@a=b", Amount(1e6, BYTES))


def test_what_compares_with_a_baseline_needs_one() -> None:
    with pytest.raises(BadOptions, match="--baseline"):
        from_words(["peak-increase=10 %"]).checked()
    with pytest.raises(BadOptions, match="--baseline"):
        from_words(["new-findings=0"]).checked()
    assert from_words(["peak-increase=10 %"], baseline="a.tlm").checked().baseline == Path("a.tlm")


def test_the_command_line_wins_over_the_file(tmp_path: Path) -> None:
    below = from_table({"peak": "1 MB", "leaks": "0", "baseline": "a.tlm"}, "here", tmp_path)

    plan = from_words(["peak=2 MB"]).over(below)

    assert {b.name: b.text for b in plan.budgets} == {"leaks": "0", "peak": "2 MB"}
    assert plan.baseline == tmp_path / "a.tlm"


@pytest.mark.parametrize(
    "table, hint",
    [
        ({"pek": "1 MB"}, "did you mean 'peak'?"),
        ({"leaks": {"floating": "0"}}, "is a table"),
        ({"allow": "lossi"}, "did you mean 'lossy'?"),
        ({"allow": 3}, "neither a text nor a list"),
        ({"strict": "yes"}, "neither true nor false"),
        ({"baseline": 3}, "not the name of a file"),
        ({"suppressions": [3]}, "neither a text nor a list"),
    ],
)
def test_a_wrong_table_is_refused(table: dict, hint: str, tmp_path: Path) -> None:
    with pytest.raises(BadOptions, match="here") as refused:
        from_table(table, "here", tmp_path)

    assert hint in str(refused.value)


def test_the_nearest_pyproject_counts(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.tlmem.check]\npeak = "1 MB"\n')
    (tmp_path / "deep" / "er").mkdir(parents=True)

    plan = from_file(None, tmp_path / "deep" / "er")

    assert [b.text for b in plan.budgets] == ["1 MB"]
    assert str(tmp_path / "pyproject.toml") in plan.budgets[0].origin


def test_a_pyproject_without_our_table_says_nothing_unless_it_is_named(tmp_path: Path) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text("[project]\nname = 'x'\n")

    assert from_file(None, tmp_path) == CheckOptions()
    with pytest.raises(BadOptions, match=r"has no table \[tool.tlmem.check\]"):
        from_file(str(path))


@pytest.mark.parametrize(
    "name, text, hint",
    [
        ("memory.toml", "peak = ", "is not TOML"),
        ("memory.toml", 'pek = "1 MB"', "did you mean 'peak'?"),
        ("pyproject.toml", "[tool.tlmem.chek]\n", "'chek' is not known; did you mean 'check'?"),
        ("pyproject.toml", "[tool.tlmem]\ncheck = 3\n", "is not a table"),
    ],
)
def test_a_wrong_file_is_named(tmp_path: Path, name: str, text: str, hint: str) -> None:
    path = tmp_path / name
    path.write_text(text)

    with pytest.raises(BadOptions) as refused:
        from_file(str(path))

    assert str(path) in str(refused.value) and hint in str(refused.value)


def test_a_file_of_its_own_has_keys_at_the_top_and_paths_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "memory.toml"
    path.write_text('peak = "1 MB"\nsuppressions = "known.txt"\n')

    plan = from_file(str(path))

    assert plan.suppressions == (tmp_path / "known.txt",)


def test_a_file_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadOptions, match="cannot be read"):
        from_file(str(tmp_path / "no.toml"))


@pytest.mark.parametrize("kind", [PERCENT, TIMES])
def test_shares_and_counts_are_no_rates(kind: str) -> None:
    with pytest.raises(ValueError, match="is not a rate"):
        parse_amount("3 % per epoch" if kind == PERCENT else "3 times per epoch", (kind,), True)


def test_the_reference_names_every_budget_and_the_command_every_option() -> None:
    reference = Path(__file__).resolve().parents[2] / "docs" / "reference"
    budgets = (reference / "config.md").read_text(encoding="utf-8")
    commands = (reference / "cli.md").read_text(encoding="utf-8")

    options = [word for action in make_parser()._actions for word in action.option_strings]

    assert [name for name in budget_kinds.KINDS if f"`{name}`" not in budgets] == []
    assert [word for word in options if word not in ("-h", "--help") and word not in commands] == []
