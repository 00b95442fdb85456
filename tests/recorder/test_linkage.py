"""Slots of libraries where the executable has an address of its own for a function.

Debian's and Ubuntu's ``python3`` are such executables: not position-independent, with ``malloc`` in
a table. Its address there is that of code of the executable, which jumps to the C library.
"""

import subprocess
import sys
from pathlib import Path

import pytest
from support.heap_programs import COMPILER

from native import harness

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or COMPILER is None, reason="needs Linux and a C compiler"
)
GIVER = "int give(void) { return 1; }\n"
TAKER = """\
int give(void);
int (*const kept)(void) = give;
int called(void) { return give(); }
int through_pointer(void) { return kept(); }
void *pointer(void) { return (void *)kept; }
"""
MAIN = """\
#include <stdio.h>
#include <string.h>
#include "platform/linkage.h"
int give(void), called(void), through_pointer(void);
void *pointer(void);
static int (*const table[])(void) = {give}; /* the executable needs an address */
static int ours(void) { return 2; }
int main(int count, char **words)
{
    int before = count > 1 && strcmp(words[1], "bound") == 0 ? give() + called() : 2;
    tlmi_slot slot = {.symbol = "give", .ours = (void *)ours, .pointers = true};
    tlmi_slots group = {.slots = &slot, .count = 1};
    tlmi_slots_first(&slot);
    tlmi_slots_spare((void *)&main);
    tlmi_slots_point(&group);
    int pointed = called() * 10 + through_pointer();
    tlmi_slots_restore(&group);
    printf("%d %d %d %d %d\\n", before, slot.alias == (void *)table[0], slot.theirs == slot.alias,
           pointed, called() * 10 + (pointer() == (void *)table[0]));
    return ((int (*)(void))slot.theirs)() - 1;
}
"""


@pytest.mark.parametrize("flags, alias", [("-no-pie", 1), ("-pie", 0)])
@pytest.mark.parametrize("word", ["bound", "lazy"])
def test_a_function_with_an_address_in_the_executable_is_met(
    tmp_path: Path, flags: str, alias: int, word: str
) -> None:
    for name, text in (("giver", GIVER), ("taker", TAKER), ("main", MAIN)):
        (tmp_path / f"{name}.c").write_text(text)
    compiler = [str(COMPILER), "-std=gnu11", "-Wl,-z,lazy"]
    position = ["-fno-pie"] if alias else ["-fPIE"]
    rest = ["-L.", "-Wl,-rpath,$ORIGIN", "-ltaker", "-lgiver", "-ldl"]
    source = harness.NATIVE / "platform" / "linkage.c"
    for words in (
        ["-shared", "-fPIC", "-o", "libgiver.so", "giver.c"],
        ["-shared", "-fPIC", "-o", "libtaker.so", "taker.c", "-L.", "-lgiver"],
        [*position, flags, f"-I{harness.NATIVE}", "-o", "main", "main.c", str(source), *rest],
    ):
        subprocess.run([*compiler, *words], cwd=tmp_path, check=True)

    done = subprocess.run(
        [tmp_path / "main", word], capture_output=True, text=True, timeout=60, check=False
    )

    # All calls come to ours, and afterwards all addresses are what they were.
    assert (done.returncode, done.stdout.split()) == (0, ["2", str(alias), "0", "22", "11"])
