"""The theme that a reader has chosen, kept in a small file from one run to the next.

It is ``tlmem/theme`` in the folder for settings: that of XDG_CONFIG_HOME, or ``~/.config``.
"""

from __future__ import annotations

import os
from pathlib import Path

LONGEST_NAME = 100


def file_of_theme() -> Path:
    """Where the name of the theme is kept."""
    folder = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(folder) / "tlmem" / "theme"


def kept_theme() -> str:
    """The name that is kept; empty where there is none, or TEXTUAL_THEME names one."""
    if os.environ.get("TEXTUAL_THEME"):
        return ""
    try:
        with file_of_theme().open(encoding="utf-8") as file:
            return file.read(LONGEST_NAME).strip()
    except (OSError, ValueError, RuntimeError):  # not there, not text, no home
        return ""


def keep_theme(name: str) -> None:
    """Keeps a name.

    Raises:
        OSError: it cannot be written.
        RuntimeError: the user has no home folder.
    """
    place = file_of_theme()
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f"{name}\n", encoding="utf-8")
