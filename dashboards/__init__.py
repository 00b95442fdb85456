"""The terminal user interface over recordings; installed as ``tlmem.dashboards``.

In: files, keys and clicks. Out: screens, and an exit code; ``opening`` starts it, ``app`` is it.
May import: errors, fleets, output, dashboards.model, dashboards.screens.
Third-party: rich, textual.
"""
