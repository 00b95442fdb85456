"""What every test of the planner must leave behind: nothing, like those of the runtime."""

from runtime.conftest import nothing_is_left, trace

__all__ = ["nothing_is_left", "trace"]
