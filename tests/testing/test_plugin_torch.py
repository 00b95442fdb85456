"""``pytest --tlmem``: limits count PyTorch's tensors."""

import pytest

pytest_plugins = ["pytester"]

pytest.importorskip("torch", reason="needs PyTorch: pip install tlmem[torch]")

TESTS = """
import pytest
import torch

cache = []


@pytest.mark.limit_tensors("1 MB")
def test_peak():
    assert torch.ones(1_000_000).sum() > 0


@pytest.mark.limit_leaks_tensors("1 kB")
def test_left():
    for _ in range(100):
        cache.append(torch.ones(1000).requires_grad_())


@pytest.mark.limit_tensors("6.1 MB")
@pytest.mark.limit_leaks_tensors("1 kB")
def test_fine():
    weight = torch.ones(1000, 500, requires_grad=True)
    (weight * 2).sum().backward()
"""
SETTINGS = """\
[pytest]
addopts = -p no:cacheprovider --strict-markers
asyncio_default_fixture_loop_scope = function
"""


def test_limits_count_tensors_of_pytorch(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    pytester.makeini(SETTINGS)
    pytester.makepyfile(test_net=TESTS)

    result = pytester.runpytest_subprocess("-p", "no:textual-snapshot", "--tlmem")

    result.stdout.fnmatch_lines(
        [
            "this test had 4.00 MB of arrays and tensors alive at once, and 1.00 MB is its limit "
            "(limit_tensors)",
            "  test_net.py:9 in test_peak: * 4.00 MB",
            "this test left 400 kB of arrays and tensors behind, and 1.00 kB is its limit "
            "(limit_leaks_tensors)",
            "  test_net.py:15 in test_left: 100 objects, 400 kB",
        ]
    )
    result.assert_outcomes(passed=1, failed=2)
