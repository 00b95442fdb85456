"""The same without an interpreter: a C program whose recording is lost, and who may read it."""

import os
import random
import signal
import stat
import subprocess
import time
from pathlib import Path

import pytest
from support.foreign import build
from support.programs import LONGEST_S, environment_of

from tlmem.recorder import linking

ROUNDS = 200 if os.environ.get("TLMEM_HOSTILE") == "long" else 10
PROGRAM = r"""
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "tlmem.h"

static void *churn(void *unused)
{
    for (int i = 0; i < 60000; i++)
        tlm_event_record(TLM_KIND_ALLOC, TLM_DEVICE_PROBE, 4096u + (uint64_t)i, 64);
    return unused;
}

static void on_bus(int number)
{
    (void)number;
    write(1, "mine\n", 5);
    _exit(9);
}

/* A fault of the program's own: a page that is cut off its file. */
static void fault(void)
{
    int fd = open("own", O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, 4096) != 0)
        exit(1);
    volatile char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (ftruncate(fd, 0) != 0)
        exit(1);
    page[0] = 1;
}

int main(int count, char **words)
{
    for (int i = 1; i < count; i++) {
        pthread_t threads[2];
        if (!strcmp(words[i], "cut") && truncate("run.tlm", 0) != 0)
            return 1;
        if (!strcmp(words[i], "handle"))
            signal(SIGBUS, on_bus);
        if (!strcmp(words[i], "fault"))
            fault();
        for (int t = 0; t < 2; t++)
            pthread_create(&threads[t], NULL, churn, NULL);
        churn(NULL);
        for (int t = 0; t < 2; t++)
            pthread_join(threads[t], NULL);
    }
    puts("end");
    return 7;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("program")
    (folder / "program.c").write_text(PROGRAM, encoding="utf-8")
    library = Path(linking.get_library())
    flags = [f"-L{library.parent}", f"-Wl,-rpath,{library.parent}", "-ltlmem"]
    return build(folder / "program", [folder / "program.c"], "-Wno-unused-result", *flags)


def run(program: Path, folder: Path, *words: str, **environment: str) -> tuple[int, bytes, bytes]:
    """Exit code and output of the program, recorded to ``run.tlm``."""
    done = subprocess.run(
        [str(program), *words],
        cwd=folder,
        capture_output=True,
        env=environment_of({"TLMEM_RECORD": "run.tlm", **environment}),
        timeout=LONGEST_S,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("words", [("", "cut", ""), ("cut",), ("handle", "", "cut"), ("", "cut")])
def test_program_in_c_goes_on_when_its_recording_is_cut(
    words: tuple[str, ...], program: Path, tmp_path: Path
) -> None:
    code, out, error = run(program, tmp_path, *words)

    assert (code, out) == (7, b"end\n"), error
    assert error.startswith(b"tlmem: the recording ended before the program, as another program")
    assert error.count(b"\n") == 1


def test_recording_is_cut_at_a_random_moment(program: Path, tmp_path: Path) -> None:
    """From outside, to a random length, while three threads write as fast as they can."""
    chance = random.Random(15)
    for round_ in range(ROUNDS):
        folder = tmp_path / str(round_)
        folder.mkdir()
        words = [str(program), *[""] * 12]
        limit = "8.4MB" if round_ % 3 == 0 else "100MB"
        environment = {"TLMEM_RECORD": "run.tlm", "TLMEM_RECORD_MAX_FILE": limit}
        process = subprocess.Popen(
            words,
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment_of(environment),
        )
        time.sleep(0.01 + chance.random() * 0.15)
        cuts = []
        for _ in range(chance.randrange(1, 4)):
            file = folder / "run.tlm"
            length = file.stat().st_size
            cuts.append((length, chance.choice([0, 100, chance.randrange(length + 1), length * 2])))
            os.truncate(file, cuts[-1][1])
            time.sleep(chance.random() * 0.02)
        out, error = process.communicate(timeout=LONGEST_S)
        assert (process.returncode, out) == (7, b"end\n"), (round_, cuts, error)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("", "fault"), -signal.SIGBUS, b""),
        (("cut", "", "fault"), -signal.SIGBUS, b""),
        (("handle", "", "fault"), 9, b"mine\n"),
        (("", "cut", "handle", "", "fault"), 9, b"mine\n"),
    ],
)
def test_fault_of_the_program_is_its_own(
    words: tuple[str, ...], code: int, said: bytes, program: Path, tmp_path: Path
) -> None:
    assert run(program, tmp_path, *words) == (code, said, b"")


@pytest.mark.parametrize(("given", "mode"), [({}, 0o600), ({"TLMEM_RECORD_MODE": "644"}, 0o644)])
def test_recording_of_a_program_in_c_has_a_mode(
    given: dict[str, str], mode: int, program: Path, tmp_path: Path
) -> None:
    assert run(program, tmp_path, **given) == (7, b"end\n", b"")
    assert stat.S_IMODE((tmp_path / "run.tlm").stat().st_mode) == mode


@pytest.mark.parametrize(
    "mode", ["rw", "888", "444", "0x1ff", "-1", " 600", "77777777777777777777"]
)
def test_mode_that_is_none_is_said(mode: str, program: Path, tmp_path: Path) -> None:
    code, out, error = run(program, tmp_path, TLMEM_RECORD_MODE=mode)

    assert (code, out) == (7, b"end\n")
    assert error.startswith(b"tlmem: TLMEM_RECORD_MODE is") and b"640" in error
    assert os.listdir(tmp_path) == []


def test_recording_of_a_program_in_c_is_not_written_through_a_link(
    program: Path, tmp_path: Path
) -> None:
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "run.tlm").symlink_to("victim")

    code, _, error = run(program, tmp_path)

    assert code == 7 and b"not recorded" in error
    assert (tmp_path / "victim").read_text() == "precious"
