"""Colours that mean something; light, so that they can be read as greys and as one of 16 colours.

Wherever one is used, a sign or a word says the same.
"""

RED, YELLOW, GREEN = "#ff8787", "#ffd75f", "#87ff87"
SEVERITIES = {"‼": RED, "!": YELLOW}
"""By the sign of a severity."""
