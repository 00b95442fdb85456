"""``pytest --tlmem``: what its markers allow, what it says, and that it costs nothing while off."""

import json
import sys
from pathlib import Path

import numpy  # noqa: F401 - pytester takes out of memory what a run imports, which numpy forbids
import pytest
import scipy.stats  # noqa: F401

from tlmem.recorder import api  # noqa: F401
from tlmem.runtime.tensors import factories  # noqa: F401
from tlmem.testing import session  # noqa: F401

pytest_plugins = ["pytester"]

TESTS = """
import numpy as np
import pytest

cache = []
bounded = {}


@pytest.mark.limit_tensors("1 MB")
def test_peak():
    assert np.ones(1_000_000).sum() > 0


@pytest.mark.limit_leaks_tensors("1 kB")
def test_left():
    for _ in range(100):
        cache.append(np.ones(1000))


@pytest.mark.limit_rss("5 MB")
def test_resident():
    cache.append(np.ones(5_000_000))


@pytest.mark.no_misuse
def test_misuse():
    import tlmem

    tensor = tlmem.ones(10)
    tensor.free()
    with pytest.raises(tlmem.DoubleFree):
        tensor.free()


@pytest.mark.limit_tensors("24 MB")
@pytest.mark.limit_leaks_tensors("1 kB")
@pytest.mark.limit_rss("50 MB")
@pytest.mark.no_misuse
def test_fine():
    for _ in range(100):
        np.ones(1000).sum()
"""
SETTINGS = """\
[pytest]
addopts = -p no:cacheprovider --strict-markers
asyncio_default_fixture_loop_scope = function
"""
OVER = ("test_peak", "test_left", "test_resident", "test_misuse")


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder for tests, each pytest in a process of its own, without other settings."""
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    pytester.makeini(SETTINGS)
    return pytester


def run(project: pytest.Pytester, *words: str) -> pytest.RunResult:
    """``pytest WORDS`` in this process, in which everything heavy has been imported.

    pytest-textual-snapshot has one folder in a process, which the inner run would remove.
    """
    return project.runpytest_inprocess("-p", "no:textual-snapshot", *words)


def tlmem(project: pytest.Pytester, *words: str) -> pytest.RunResult:
    """``tlmem WORDS``."""
    return project.run(sys.executable, "-m", "tlmem", *words)


def recordings(project: pytest.Pytester, folder: str = ".tlmem") -> list[str]:
    """What is kept."""
    return sorted(path.name for path in (project.path / folder).glob("*.tlm"))


# ---- off ----


def test_markers_are_known_and_nothing_is_measured_while_it_is_off(
    project: pytest.Pytester,
) -> None:
    project.makepyfile(TESTS)

    run(project).assert_outcomes(passed=5)
    assert not (project.path / ".tlmem").exists()


def test_nothing_heavy_is_imported_while_it_is_off(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.makepyfile(
        """
        import sys

        def test_loaded():
            ours = sorted(n for n in sys.modules if n.partition(".")[0] == "tlmem")
            assert ours == ["tlmem", "tlmem._exports", "tlmem.pytest_plugin"]
            heavy = {"numpy", "pandas", "scipy", "matplotlib", "textual", "psutil", "cffi"}
            assert not heavy & set(sys.modules)
        """
    )

    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    project.runpytest_subprocess("-p", "tlmem.pytest_plugin").assert_outcomes(passed=1)


# ---- limits ----


def test_each_limit_fails_its_test_with_the_line_to_blame(project: pytest.Pytester) -> None:
    project.makepyfile(test_model=TESTS)

    # In a process of its own: malloc may have kept much of what earlier tests freed.
    result = project.runpytest_subprocess("-p", "no:textual-snapshot", "--tlmem")

    result.assert_outcomes(passed=1, failed=4)
    result.stdout.fnmatch_lines(
        [
            "this test had 8.00 MB of arrays and tensors alive at once, and 1.00 MB is its limit "
            "(limit_tensors)",
            "  test_model.py:10 in test_peak: * 8.00 MB",
            "see: tlmem report .tlmem/test_model.py.test_peak.tlm",
            "this test left 800 kB of arrays and tensors behind, and 1.00 kB is its limit "
            "(limit_leaks_tensors)",
            "  test_model.py:16 in test_left: 100 objects, 800 kB",
            "      cache.append(np.ones(1000))",
            "this test took * MB of resident memory, and 5.00 MB is its limit (limit_rss)",
            "this test misused objects once (no_misuse)",
            "  An object was freed that had been freed before: once, at test_model.py:*",
            "*tlmem: memory of 5 tests*",
            "*40.0 MB*test_model.py::test_resident",
        ]
    )
    assert recordings(project) == sorted(f"test_model.py.{name}.tlm" for name in OVER)


def test_the_command_in_the_message_opens_the_recording(project: pytest.Pytester) -> None:
    project.makepyfile(test_model=TESTS)
    run(project, "--tlmem", "-k", "test_left")

    report = tlmem(project, "report", ".tlmem/test_model.py.test_left.tlm")

    assert report.ret == 0
    report.stdout.fnmatch_lines(["*test_model.py:16 in test_left*"])


def test_a_message_has_few_lines(project: pytest.Pytester) -> None:
    project.makepyfile(TESTS)

    result = run(project, "--tlmem", "-k", "test_left")
    message = result.stdout.str().partition("test_left ___")[2].partition("====")[0]

    assert len(message.strip().splitlines()) <= 6


def test_what_was_older_than_the_test_or_made_by_a_fixture_does_not_count(
    project: pytest.Pytester,
) -> None:
    project.makepyfile(
        """
        import numpy as np
        import pytest

        @pytest.fixture
        def large():
            return np.ones(1_000_000)

        @pytest.mark.limit_tensors("1 MB")
        def test_small(large):
            assert np.ones(10).sum() + large[0] == 11
        """
    )

    run(project, "--tlmem").assert_outcomes(passed=1)


def test_cycles_that_the_collector_frees_are_not_left(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import numpy as np
        import pytest

        @pytest.mark.limit_leaks_tensors("1 kB")
        def test_cycle():
            holder = [np.ones(1000)]
            holder.append(holder)
        """
    )

    run(project, "--tlmem").assert_outcomes(passed=1)


def test_a_test_that_fails_by_itself_says_its_own(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import numpy as np
        import pytest

        @pytest.mark.limit_tensors("1 kB")
        def test_broken():
            np.ones(1_000_000)
            assert 1 == 2

        @pytest.mark.xfail(strict=True)
        @pytest.mark.limit_tensors("1 kB")
        def test_expected():
            np.ones(1_000_000)
        """
    )

    result = run(project, "--tlmem")

    result.assert_outcomes(failed=1, xfailed=1)
    result.stdout.fnmatch_lines(["E*assert 1 == 2"])
    result.stdout.no_fnmatch_line("*this test had*")


def test_known_leaks_are_not_held_against_a_test(project: pytest.Pytester) -> None:
    project.makepyfile(test_model=TESTS)
    (project.path / "known.txt").write_text("leak:^test_left$\n")
    project.makeini(f"{SETTINGS}tlmem_suppressions = known.txt\n")

    run(project, "--tlmem", "-k", "test_left").assert_outcomes(passed=1)


def test_a_test_may_record_by_itself(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import numpy as np
        import pytest
        import tlmem

        @pytest.mark.no_tlmem
        def test_own(tmp_path):
            with tlmem.Recorder(tmp_path / "own.tlm"):
                np.ones(3)
            assert tlmem.read(tmp_path / "own.tlm").complete
        """
    )

    run(project, "--tlmem").assert_outcomes(passed=1)


# ---- loops ----


def test_a_loop_leaves_warm_up_out_and_judges_each_run(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import numpy as np
        import pytest

        made, bounded, runs = [], {}, []

        @pytest.mark.limit_leaks_tensors("1 kB")
        def test_leaks():
            made.append(np.ones(1000))

        @pytest.mark.limit_leaks_tensors("1 kB")
        def test_replaces():
            bounded["last"] = np.ones(1000)

        @pytest.mark.limit_leaks_tensors("1 kB")
        def test_fills_at_first():
            if "filled" not in bounded:
                bounded["filled"] = np.ones(100_000)

        def test_counts():
            runs.append(1)

        def test_counted():
            assert len(runs) == 3 + 8
        """
    )

    result = run(project, "--tlmem", "--tlmem-loop", "3:8", "-k", "not counted")

    result.assert_outcomes(passed=3, failed=1, deselected=1)
    result.stdout.fnmatch_lines(
        ["this test left 8.00 kB of arrays and tensors behind in each run*"]
    )


def test_a_loop_runs_as_often_as_it_was_told(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import pathlib

        def test_counts():
            with open(pathlib.Path(__file__).with_name("runs"), "a") as file:
                file.write("x")
        """
    )

    run(project, "--tlmem", "--tlmem-loop", "3:8").assert_outcomes(passed=1)
    assert (project.path / "runs").read_text() == "x" * 11


@pytest.mark.parametrize("loop", ["5:", "5:0", "x", "-1:3", "1:2:3"])
def test_a_loop_that_is_none_is_refused(project: pytest.Pytester, loop: str) -> None:
    result = run(project, "--tlmem", f"--tlmem-loop={loop}")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*--tlmem-loop '{loop}' is not understood*"])


# ---- settings ----


def test_settings_switch_on_and_hold_for_every_test_without_a_marker(
    project: pytest.Pytester,
) -> None:
    project.makepyfile(TESTS)
    project.makepyprojecttoml(
        """
        [tool.pytest.ini_options]
        addopts = "-p no:cacheprovider"
        asyncio_default_fixture_loop_scope = "function"
        tlmem = true
        tlmem_limit_tensors = "10 MB"
        tlmem_dir = "kept"
        """
    )
    (project.path / "tox.ini").unlink()

    result = run(project, "-k", "test_peak or test_resident or test_fine")

    result.assert_outcomes(passed=1, failed=2)
    assert recordings(project, "kept") == [
        f"{Path(p).name}.{n}.tlm"
        for p in [next(project.path.glob("test_*.py")).name]
        for n in ("test_peak", "test_resident")
    ]


@pytest.mark.parametrize(
    "marker, hint",
    [
        ('limit_tensors("24")', "*limit_tensors = '24' has no unit*"),
        ("limit_tensors(24)", "*limit_tensors(24) is not understood*"),
        ("limit_rss()", "*limit_rss() is not understood*"),
        ('limit_rss("5 MB", 3)', "*is not understood*"),
        ("no_misuse(1)", "*no_misuse takes no arguments*"),
    ],
)
def test_a_marker_that_is_none_is_refused_before_anything_runs(
    project: pytest.Pytester, marker: str, hint: str
) -> None:
    project.makepyfile(f"import pytest\n\n@pytest.mark.{marker}\ndef test_a():\n    1 / 0\n")

    result = run(project, "--tlmem")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([hint])


def test_recording_twice_is_refused(project: pytest.Pytester) -> None:
    project.makepyfile("def test_a(): pass\n")

    result = tlmem(project, "record", "-q", "-m", "pytest", "--tlmem")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*recorded to * already*"])


def test_a_folder_that_cannot_be_made_is_told(project: pytest.Pytester) -> None:
    project.makepyfile("def test_a(): pass\n")
    (project.path / "taken").write_text("")

    result = run(project, "--tlmem", "--tlmem-dir", "taken/below")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.fnmatch_lines(["*taken/below cannot be made*give --tlmem-dir FOLDER*"])


# ---- beside others ----


def test_workers_record_each_for_themselves(project: pytest.Pytester) -> None:
    project.makepyfile(test_model=TESTS)

    result = project.runpytest_subprocess("--tlmem", "-n", "2")

    result.assert_outcomes(passed=1, failed=4)
    result.stdout.fnmatch_lines(["*tlmem: memory of 5 tests*"])
    assert len(recordings(project)) == 4
    assert all(".gw" in name for name in recordings(project))


def test_pytest_memray_does_its_own_beside_it(project: pytest.Pytester) -> None:
    pytest.importorskip("pytest_memray", reason="pytest-memray is not made for this system")
    project.makepyfile(
        """
        import numpy as np
        import pytest

        @pytest.mark.limit_memory("100 MB")
        @pytest.mark.limit_tensors("1 MB")
        def test_ours():
            np.ones(1_000_000)

        @pytest.mark.limit_memory("1 MB")
        @pytest.mark.limit_tensors("100 MB")
        def test_theirs():
            np.ones(1_000_000)

        @pytest.mark.limit_memory("100 MB")
        @pytest.mark.limit_tensors("100 MB")
        def test_fine():
            np.ones(1_000_000)
        """
    )

    for words in ([], ["--tlmem-loop", "1:3"]):
        result = project.runpytest_subprocess("--tlmem", "--memray", *words)

        result.assert_outcomes(passed=1, failed=2)
        result.stdout.fnmatch_lines(["*Test was limited to 1.0MiB but allocated *"])
        result.stdout.fnmatch_lines(["this test had 8.00 MB of arrays and tensors alive at once*"])


def test_unittest_and_asyncio_tests_are_measured_too(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import asyncio
        import unittest

        import numpy as np
        import pytest

        class TestOld(unittest.TestCase):
            @pytest.mark.limit_tensors("1 MB")
            def test_over(self):
                np.ones(1_000_000)

        @pytest.mark.asyncio
        @pytest.mark.limit_tensors("1 MB")
        async def test_task():
            await asyncio.sleep(0)
            np.ones(1_000_000)
        """
    )

    run(project, "--tlmem").assert_outcomes(failed=2)


def test_what_a_test_took_is_in_the_junit_report(project: pytest.Pytester) -> None:
    project.makepyfile(TESTS)

    run(project, "--tlmem", "--junitxml=junit.xml", "-k", "test_fine")

    text = (project.path / "junit.xml").read_text()
    assert 'name="tlmem_peak_bytes"' in text and 'name="tlmem_left_bytes" value="0"' in text


def test_kept_recordings_are_whole_and_the_folder_is_ignored_by_git(
    project: pytest.Pytester,
) -> None:
    project.makepyfile(TESTS)
    run(project, "--tlmem", "--tlmem-keep", "-k", "test_fine")

    (name,) = recordings(project)
    report = tlmem(project, "report", "--format", "json", f".tlmem/{name}")

    assert json.loads(report.stdout.str())["recording"]["complete"]
    assert (project.path / ".tlmem" / ".gitignore").read_text() == "*\n"
