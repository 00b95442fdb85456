"""The terminal user interface over recordings; installed as ``tlmem.dashboards``."""
