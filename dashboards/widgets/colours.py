"""Colours that mean something; light on dark, so that they can be read as one of 16 colours, too.

Wherever one is used, a sign or a word says the same.
"""

RED, YELLOW, GREEN = "#ff8787", "#ffd75f", "#87ff87"
SEVERITIES = {"‼": RED, "!": YELLOW}
"""By the sign of a severity."""
ON_LIGHT = {RED: "#a61b1b", YELLOW: "#6f5000", GREEN: "#00613f"}
"""What stands for them where the ground is light."""


def readable(colour: str, dark: bool) -> str:
    """A colour of these as it can be read on a dark or a light ground; others as they are."""
    return colour if dark else ON_LIGHT.get(colour, colour)
