"""Every C test of this directory, once per sanitizer, and proof that each one finds faults."""

import contextlib
import os
import sys
import time
from pathlib import Path

import psutil
import pytest

from native import harness

pytestmark = pytest.mark.native

CASES = [
    pytest.param(path, name, id=f"{path.stem}-{name}")
    for path in sorted(harness.TESTS.glob("test_*.c"))
    for name in harness.needs(path).modes
]

FAULTS = {
    "leak": (
        ("address", "valgrind"),
        "#include <stdlib.h>\nvoid *volatile kept;\n"
        "int main(void) { kept = malloc(10); kept = 0; return 0; }\n",
    ),
    "overrun": (
        ("address", "valgrind"),
        "#include <stdlib.h>\nint main(void) { volatile char *p = malloc(10);\n"
        "p[10] = 1; free((void *)p); return 0; }\n",
    ),
    "overflow": (
        ("address",),
        "volatile int big = 2147483647;\nint main(void) { return (big + 1) == 3; }\n",
    ),
    "race": (
        ("thread",),
        # Many times: of two stores at the very same moment the sanitizer may see only one.
        "#include <pthread.h>\n#include <stddef.h>\nvolatile int shared;\n"
        "static void *add(void *unused) {\n"
        "for (int i = 0; i < 100000; i++) shared++;\nreturn unused; }\n"
        "int main(void) { pthread_t other; pthread_create(&other, NULL, add, NULL);\n"
        "add(NULL); pthread_join(other, NULL); return 0; }\n",
    ),
}


def need_mode(name: str, objective_c: bool = False) -> None:
    """Skips, with the reason, where a mode cannot work; fails where it was promised."""
    _, reason = harness.wrapper_of(name)
    if objective_c and not reason:
        _, _, reason = harness.objective_c_flags()
    if reason:
        promised = os.environ.get("TLMEM_REQUIRE_SANITIZERS", "") not in ("", "0")
        assert not promised, reason
        pytest.skip(reason)


@pytest.mark.parametrize("test, mode_name", CASES)
def test_c(test: Path, mode_name: str, tmp_path: Path) -> None:
    """The program exits with 0, and the sanitizer has nothing to say."""
    mode, wanted = harness.MODES[mode_name], harness.needs(test)
    need_mode(mode_name, wanted.objective_c)
    program = harness.build(test, mode, wanted)
    result = harness.execute(program, mode, wanted, tmp_path)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(
    "fault, mode_name", [(fault, mode) for fault, (modes, _) in FAULTS.items() for mode in modes]
)
def test_a_fault_is_found(fault: str, mode_name: str, tmp_path: Path) -> None:
    """The harness itself: a program with a fault does not pass."""
    need_mode(mode_name)
    if sys.platform == "darwin" and fault == "leak":
        pytest.skip("AddressSanitizer of macOS does not look for leaks")
    source = tmp_path / f"fault_{fault}.c"
    source.write_text(FAULTS[fault][1])
    wanted = harness.Needs((), False, (mode_name,))
    mode = harness.MODES[mode_name]
    program = harness.build(source, mode, wanted)
    result = harness.execute(program, mode, wanted, tmp_path)
    assert result.returncode != 0, f"{fault} went unnoticed under {mode_name}: {result.stdout}"


def test_a_child_left_behind_ends_with_its_program() -> None:
    """Its output is not waited for, and it does not outlive the test."""
    begin = time.monotonic()
    result = harness.run(["sh", "-c", "sleep 1000 & echo $!; exit 3"])
    assert result.returncode == 3 and time.monotonic() - begin < 100
    with contextlib.suppress(psutil.NoSuchProcess):
        child = psutil.Process(int(result.stdout))
        while child.status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() - begin < 100
            time.sleep(0.01)
