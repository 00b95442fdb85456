"""The screens, a module each: which widgets they have, and what each key does.

In: what the model found, messages of widgets. Out: widgets filled, a changed view, other screens.
May import: errors, units, analysis, recording.tables, dashboards, dashboards.model,
dashboards.widgets.
Third-party: rich, textual.
"""
