"""The widgets that screens are made of; each draws only those lines that are on screen.

In: rows, boxes and values per column, made by the model. Out: lines of text, messages.
May import: units, analysis, dashboards, dashboards.model.
Third-party: numpy, pandas, rich, textual.
"""
