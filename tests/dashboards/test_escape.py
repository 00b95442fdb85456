"""Escape is looked for soon after a key, and not at the end of a long wait."""

import os
import selectors

import pytest
from textual import constants
from textual.drivers import linux_driver
from tlmem.dashboards.escape_key import SLACK_S, SoonAfterKeys, answer_escape_soon


def test_only_the_wait_after_input_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float | None] = []
    real = selectors.SelectSelector.select

    def select(self: selectors.SelectSelector, timeout: float | None = None) -> list:
        waits.append(timeout)
        return real(self, 0)

    monkeypatch.setattr(selectors.SelectSelector, "select", select)
    reading, writing = os.pipe()
    selector = SoonAfterKeys(0.03)
    selector.register(reading, selectors.EVENT_READ)
    selector.select(0.1)
    os.write(writing, b"\x1b")
    assert [key.fd for key, _ in selector.select(0.1)] == [reading]
    os.read(reading, 1)
    selector.select(0.1)
    selector.select(0.1)
    selector.close()
    os.close(reading)
    os.close(writing)

    assert waits == [0.1, 0.1, 0.03, 0.1]


def test_textual_waits_for_keys_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linux_driver, "selectors", selectors)
    answer_escape_soon(constants.ESCAPE_DELAY)
    made = linux_driver.selectors.SelectSelector()
    soon_s = made._soon_s  # type: ignore[attr-defined]
    made.close()

    assert isinstance(made, SoonAfterKeys)
    assert soon_s == constants.ESCAPE_DELAY + SLACK_S
    assert linux_driver.selectors.EVENT_READ == selectors.EVENT_READ
