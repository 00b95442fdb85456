"""A speedscope file is read by speedscope itself, in a real browser, and fits its own schema.

Needs the command ``speedscope`` (``npm install -g speedscope``) and Chromium on the PATH.
"""

import base64
import json
import shutil
from pathlib import Path

import pytest
from support.browser import Browser, find
from support.story import write_story

import tlmem
from tlmem.export import speedscope

COMMAND = shutil.which("speedscope")
pytestmark = [
    pytest.mark.xdist_group("browser"),
    pytest.mark.skipif(COMMAND is None, reason="needs speedscope: npm install -g speedscope"),
]
SHOWN = """new Promise(resolve => {
    let left = 1200
    const look = () => {
        const text = document.body.innerText
        const known = /bytes alive|unrecognized|went wrong/i.test(text)
        known || --left < 0 ? resolve(text) : setTimeout(look, 50)
    }
    look()
})"""
"""What stands on the page once it shows a profile, or says why it cannot; after a minute anyway."""


@pytest.fixture(scope="module")
def release() -> Path:
    """The page of the speedscope that is installed."""
    return Path(COMMAND or "").resolve().parents[1] / "dist" / "release"


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("speedscope")
    speedscope.write(tlmem.read(write_story(folder / "story.tlm")), folder / "story.json")
    return folder / "story.json"


def test_speedscope_shows_the_profile(release: Path, exported: Path, tmp_path: Path) -> None:
    if find() is None:
        pytest.skip("needs Chromium, which is not on this machine")
    text = base64.b64encode(exported.read_bytes()).decode()
    # The command makes such a script, and names it in the address.
    script = tmp_path / "load.js"
    script.write_text(f"speedscope.loadFileFromBase64('story.json', '{text}')")
    with Browser(tmp_path / "profile") as browser:
        browser.open(release / "index.html", f"#localProfilePath={script}")
        shown = browser.evaluate(SHOWN)

    assert "bytes alive when judged (1/4)" in shown


def test_the_file_fits_the_schema_that_speedscope_ships(release: Path, exported: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="needs jsonschema")
    schema = json.loads((release / "file-format-schema.json").read_text(encoding="utf-8"))

    jsonschema.validate(json.loads(exported.read_text(encoding="utf-8")), schema)
