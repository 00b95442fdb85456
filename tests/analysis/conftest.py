"""``TLMEM_WITHOUT_RULE=NAME`` switches a rule off: which simulated programs need it?

``python -m corpus.ablation`` counts the tests that fail.
"""

import os
from collections.abc import Iterator

import pytest

from tlmem.analysis.rules import Rules, without


@pytest.fixture(autouse=True, scope="session")
def rule_switched_off() -> Iterator[None]:
    """The rule that the environment names, if it names one."""
    name = os.environ.get("TLMEM_WITHOUT_RULE", "")
    if not name:
        yield
        return
    with without(getattr(Rules, name)):
        yield
