"""The report as a comment: it fits, and nothing in it becomes markup, a mention or a link."""

import re

import pytest
from support.summaries import leaking, process_of, renamed
from support.traces import Program

from tlmem.analysis.model import Holder, StackFrame
from tlmem.report import markdown
from tlmem.report.summary import Summary

NASTY = "```\n</details><script>@octocat #1 | https://evil.example www.evil.example [x](y) `` ~~~"


@pytest.fixture(scope="module")
def comment() -> str:
    return markdown.render(Summary((leaking(),)))


def outside_code(comment: str) -> str:
    """A comment without what stands in fences and between ticks."""
    without = re.sub(r"^(`{3,})text\n.*?^\1$", "", comment, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", without)


def test_the_verdict_comes_first(comment: str) -> None:
    head, sentence, *_ = comment.split("\n\n")

    assert head == "### ❌ tlmem: leak, `program.py`"
    assert sentence.startswith("Leak at program.py:20: 2,000 of 2,000 arrays ")


def test_numbers_and_findings_are_tables(comment: str) -> None:
    assert "| tracked in total | 32.0 MB | 4,000 |" in comment
    assert re.search(r"\| ❌ error \| growing-site \| `program.py:20 work` \| 16.0 MB ", comment)


def test_what_is_folded_is_closed(comment: str) -> None:
    assert comment.count("<details>") == comment.count("</details>") >= 2
    assert len(re.findall(r"^```text$", comment, re.MULTILINE)) == len(
        re.findall(r"^```$", comment, re.MULTILINE)
    )


def test_all_columns_of_a_table_have_equally_many_cells() -> None:
    frame = StackFrame("/a/b|c.py", 1, "f|g")
    comment = markdown.render(renamed(leaking(), site=frame))
    rows = [line for line in comment.splitlines() if line.startswith("| ❌")]

    assert rows and all(len(re.findall(r"(?<!\\)\|", row)) == 7 for row in rows)


def test_names_do_not_become_markup_mentions_or_links() -> None:
    frame = StackFrame(f"/a/{NASTY}.py", 1, NASTY)
    comment = markdown.render(
        renamed(
            leaking(info={"script": NASTY, "command": NASTY}),
            evidence=NASTY, site=frame, stack=(frame,), holders=(Holder("field", NASTY, frame),),
        )
    )  # fmt: skip
    plain = outside_code(comment)

    for part in ("<script", "@octocat", " #1", "https://", "www.", "[x]"):
        assert part not in plain
    assert plain.count("</details>") == plain.count("<details>")


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("my_file.py:3", "my&#95;file.py:3"),
        ("@me &#64;me", "@&#8203;me &#38;#&#8203;64;me"),
        ("see #12; http://x www.x", "see #&#8203;12; http:&#8203;//x www&#8203;.x"),
        ("4.1 MB/s (95%)", "4.1 MB/s &#40;95%&#41;"),
        ("a\nb", "a b"),
    ],
)
def test_words_are_written_so_that_they_mean_nothing(text: str, made: str) -> None:
    assert markdown.words(text) == made


def test_a_fence_is_longer_than_any_in_it() -> None:
    made = markdown.fenced(["````", "text"]).split("\n")

    assert made[0] == "`````text" and made[-1] == "`````"


@pytest.mark.parametrize("name", ["plain", "a`b", "``", "`x`", "a  b\nc"])
def test_a_name_is_code_whatever_is_in_it(name: str) -> None:
    made = markdown.code(name)
    ticks = re.match("`+", made)[0]

    assert made.endswith(ticks)
    assert ticks not in made[len(ticks) : -len(ticks)]
    assert "\n" not in made


def test_a_comment_always_fits() -> None:
    long = "é" * 5_000
    frames = tuple(StackFrame(f"/{long}{i}.py", i, long) for i in range(200))
    summary = renamed(
        leaking(problems=[long] * 300),
        evidence=long, stack=frames, site=frames[0],
        holders=tuple(Holder("field", long, frames[0]) for _ in range(300)),
    )  # fmt: skip
    comment = markdown.render(summary)

    assert len(comment.encode()) < markdown.MOST_LETTERS
    assert comment.count("<details>") == comment.count("</details>")
    assert "did not fit" in comment


def test_blocks_that_fit_are_all_there() -> None:
    assert markdown.fitted(["a", "b"]) == "a\n\nb\n"
    assert markdown.fitted(["a", "b" * 200], most=150) == "a\n" + markdown.LEFT_OUT


def test_a_family_has_a_row_for_each_process() -> None:
    comment = markdown.render(Summary((leaking(pid=7), leaking(pid=8))))

    assert re.search(r"^\| 7 \| `program.py` \| leak \|", comment, re.MULTILINE)
    assert re.search(r"^\| 8 \| `program.py` \| leak \|", comment, re.MULTILINE)


def test_what_cannot_be_judged_is_no_pass() -> None:
    program = Program()
    program.alloc(1)
    comment = markdown.render(Summary((process_of(program),)))

    assert comment.startswith("### ❓ tlmem: cannot-judge")
    assert "✅" not in comment
