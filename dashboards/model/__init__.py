"""From recordings to what is on screen. Nothing here imports Textual, so it is tested plainly.

In: recordings, and what the reader of the screens has chosen. Out: rows, boxes, values per column.
May import: errors, events, units, recording, analysis, fleets, report.
Third-party: numpy, pandas.

Reading order: ``glance`` (what is known at once), ``loading`` (a recording with all that screens
ask of it), ``view`` (what the reader of the screens has chosen), then one module for each screen.
"""
