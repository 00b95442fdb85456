"""Recordings to look at."""

from pathlib import Path

import pytest
from support import training
from support.screens import LONGEST_S
from support.story import write_story
from textual.notifications import Notification
from tlmem.dashboards.model.loading import Loaded


@pytest.fixture(autouse=True)
def notices_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """A notice is there when a test looks for it, however late that is."""
    monkeypatch.setattr(Notification, "time_left", LONGEST_S)


@pytest.fixture(scope="session")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training loop whose reader keeps every batch."""
    return write_story(tmp_path_factory.mktemp("story") / "story.tlm")


@pytest.fixture(scope="session")
def mended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same loop with a reader that releases what it acquires."""
    return write_story(tmp_path_factory.mktemp("mended") / "mended.tlm", leaks=False)


@pytest.fixture(scope="session")
def net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A net of four blocks, trained with PyTorch."""
    return training.trained().write(tmp_path_factory.mktemp("net") / "net.tlm")


@pytest.fixture(scope="session")
def loaded(story: Path) -> Loaded:
    """The story, read and analysed."""
    found = Loaded(story)
    found.read_events()
    found.analyse()
    return found
