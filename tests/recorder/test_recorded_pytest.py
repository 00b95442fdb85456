"""``tlmem record -m pytest``: pytest says what it says without the recorder.

tlmem is installed with a pytest plugin, and pytest looks at the modules of every plugin's package.
"""

from pathlib import Path

import pytest
from support.programs import assert_same

import tlmem

TEST = """
def test_it():
    assert 1 + 1 == 2

def test_fails():
    assert [1, 2] == [1, 3]
"""


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """An environment in which tlmem is installed as from a wheel, with the names of its files."""
    site = tmp_path / "site"
    meta = site / "tlmem-0.dist-info"
    meta.mkdir(parents=True)
    (site / "tlmem").symlink_to(Path(tlmem.__file__).parent)
    (meta / "METADATA").write_text("Metadata-Version: 2.1\nName: tlmem\nVersion: 0\n")
    (meta / "RECORD").write_text("tlmem/__init__.py,,\ntlmem/pytest_plugin.py,,\n")
    (meta / "entry_points.txt").write_text("[pytest11]\ntlmem = tlmem.pytest_plugin\n")
    return {"PYTHONPATH": str(site)}


@pytest.mark.parametrize("options", [[], ["-W", "error"], ["--assert=plain"]])
def test_pytest_says_the_same_when_it_is_recorded(
    options: list[str], installed: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "test_one.py").write_text(TEST)
    # Twice -q: the line with the seconds is left out.
    words = ["-m", "pytest", "-p", "no:cacheprovider", "-q", "-q", "-rA", *options, "test_one.py"]

    assert_same(words, tmp_path, environment=installed)
