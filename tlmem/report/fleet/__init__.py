"""The report on any number of recordings, on one page: ``text``, ``json``, ``markdown``, ``html``.

In: a ``fleets.comparing.FleetAnalysis``. Out: text.
May import: units, fleets, analysis, report. Inside functions: report.html.
Third-party: nothing.

``run`` decides between this page and the report on a single family; ``words`` has what the formats
share.
"""
