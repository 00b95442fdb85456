"""The workflows of GitHub are what their linter accepts, and the action what its schema allows.

Does not cover: running them.
"""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FILES = {
    "vendor.github-workflows": sorted(ROOT.glob(".github/workflows/*.yml")),
    "vendor.github-actions": sorted(ROOT.glob(".github/actions/*/action.yml")),
}


def lint(schema: str, *files: Path) -> subprocess.CompletedProcess[str]:
    """Checks files against one of the schemas that come with the linter."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema]
    return subprocess.run([*command, *map(str, files)], capture_output=True, text=True)


@pytest.mark.parametrize("schema", FILES)
def test_every_file_is_as_its_schema_says(schema: str) -> None:
    assert FILES[schema]

    done = lint(schema, *FILES[schema])
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_workflow_with_a_misspelt_key_is_refused(tmp_path: Path) -> None:
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    wrong = tmp_path / "release.yml"
    wrong.write_text(text.replace("runs-on:", "run-on:", 1), encoding="utf-8")

    assert lint("vendor.github-workflows", wrong).returncode == 1
