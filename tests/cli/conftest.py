"""Programs in C that the tests of recording build, for commands that read their recordings."""

from recorder.conftest import endings, place, recorded, steps, steps_library, train

__all__ = ["endings", "place", "recorded", "steps", "steps_library", "train"]
