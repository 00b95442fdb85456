"""The command palette: every screen and every key by name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator

from textual.command import DiscoveryHit, Hit, Hits, Provider


class TlmemCommands(Provider):
    """Goes to screens and runs the actions of the screen in front."""

    def _commands(self) -> Iterator[tuple[str, str, str]]:
        """(Name, action, help) of everything that can be done now."""
        for name, page in self.app.MODES.items():
            about = getattr(page, "ABOUT", "")
            yield f"Go to {name}", f"app.go('{name}')", about
        seen = set()
        for _, binding, enabled, _ in self.screen.active_bindings.values():
            if enabled and binding.description and binding.action not in seen:
                seen.add(binding.action)
                if not binding.action.startswith("go("):
                    yield binding.description.capitalize(), binding.action, f"key {binding.key}"

    def _run(self, action: str) -> Callable[[], Awaitable[None]]:
        async def run() -> None:
            await self.screen.run_action(action)

        return run

    async def discover(self) -> Hits:
        """Everything, before anything is typed."""
        for name, action, about in self._commands():
            yield DiscoveryHit(name, self._run(action), help=about)

    async def search(self, query: str) -> Hits:
        """What matches."""
        matcher = self.matcher(query)
        for name, action, about in self._commands():
            score = matcher.match(name)
            if score > 0:
                yield Hit(score, matcher.highlight(name), self._run(action), help=about)
