"""``tlmem live --prometheus``: the files of a running program, as Prometheus scrapes them."""

import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse
from support.programs import command, environment_of

import tlmem.export.metrics as metrics
from tlmem.errors import TlmemError

PROGRAM = """
import os, sys
import numpy
kept = []
LINES
child = os.fork()
if child == 0:
    held = [numpy.empty(3000, numpy.uint8) for _ in range(30)]
    print("child", flush=True)
    sys.stdin.read()
    os._exit(0)
print("made", flush=True)
sys.stdin.read()
os.waitpid(child, 0)
"""
BLOCK = "for _ in range({count}): kept.append(numpy.empty(1000, numpy.uint8))"
LINES = "\n".join(BLOCK.format(count=count) for count in range(1, metrics.MOST_LINES + 4))


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, int]]:
    """The recording of a program that runs until it is left, and its process id."""
    folder = tmp_path_factory.mktemp("running")
    (folder / "program.py").write_text(PROGRAM.replace("LINES", LINES), encoding="utf-8")
    words = [sys.executable, "-m", "tlmem", "record", "-q", "-o", "a.tlm", "program.py"]
    with subprocess.Popen(
        words,
        cwd=folder,
        env=environment_of(None),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdout is not None and program.stdin is not None
        assert sorted(program.stdout.readline() for _ in range(2)) == ["child\n", "made\n"]
        yield folder / "a.tlm", program.pid
        program.stdin.close()
        assert program.wait() == 0


@pytest.fixture(scope="module")
def scraped(running: tuple[Path, int]) -> tuple[dict[str, list[Any]], int, str]:
    """The samples of one scrape by their name, the command's exit code, and what it said."""
    words = [sys.executable, "-m", "tlmem", "live", "a.tlm", "--prometheus", ":0"]
    with subprocess.Popen(
        words,
        cwd=running[0].parent,
        env=environment_of(None),
        stderr=subprocess.PIPE,
        text=True,
        # Tests that run in the background of a shell ignore it, and so would the server.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as server:
        assert server.stderr is not None
        said = server.stderr.readline()
        address = next(word for word in said.split() if word.startswith("http")).rstrip(";")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(address) as answer:
            text = answer.read().decode()
        server.send_signal(signal.SIGINT)
        code = server.wait()
    return {each.name: each.samples for each in parse(text)}, code, said


def of_process(samples: list[Any], pid: int) -> list[Any]:
    return [each for each in samples if each.labels["process"] == str(pid)]


def test_live_bytes_stand_by_line(
    running: tuple[Path, int], scraped: tuple[dict[str, list[Any]], int, str]
) -> None:
    values, _, _ = scraped
    held = {
        each.labels["line"].rpartition("/")[2]: (each.value, each.labels["function"])
        for each in of_process(values["tlmem_live_bytes"], running[1])
    }

    last = 5 + metrics.MOST_LINES + 2
    assert held[f"program.py:{last}"] == (1000 * (metrics.MOST_LINES + 3), "<module>")
    # Of the lines beyond the first ones only the sum: 1, 2 and 3 arrays.
    assert held["other"] == (6000, "other")
    assert len(held) == metrics.MOST_LINES + 1


def test_each_process_of_the_family_is_there(
    running: tuple[Path, int], scraped: tuple[dict[str, list[Any]], int, str]
) -> None:
    values, _, _ = scraped
    verdicts: dict[str, list[str]] = {}
    for each in values["tlmem_verdict"]:
        if each.value == 1:
            verdicts.setdefault(each.labels["process"], []).append(each.labels["outcome"])

    assert values["tlmem_processes"][0].value == 2
    assert len(verdicts) == 2 and str(running[1]) in verdicts
    assert all(len(outcomes) == 1 for outcomes in verdicts.values())
    assert all(each.value > 1_000_000 for each in values["tlmem_resident_bytes"])
    assert [each.value for each in values["tlmem_lost_events"]] == [0, 0]
    assert {each.labels["line"] for each in values["tlmem_growth_bytes_per_second"]} == {"other"}


def test_ctrl_c_ends_it(scraped: tuple[dict[str, list[Any]], int, str]) -> None:
    _, code, said = scraped

    assert code == 0
    assert said.startswith("tlmem: a.tlm at http://127.0.0.1:") or "/a.tlm at http" in said


def test_files_are_read_again_for_a_share_of_the_time_only(running: tuple[Path, int]) -> None:
    now = [100.0]
    watch = metrics.Watch(running[0], clock=lambda: now[0])
    first, count = watch.members()
    again, _ = watch.members()
    now[0] += metrics.SOON_S
    later, _ = watch.members()

    assert count == 2 and first[0] is again[0]
    assert later[0] is not again[0] and later[0].labels == again[0].labels


def test_a_line_that_stands_twice_has_one_sample() -> None:
    values = [(("a", "f"), 1.0), (("b", "f"), 2.0), (("a", "f"), 4.0)]

    assert metrics.summed(values) == [(("a", "f"), 5.0), (("b", "f"), 2.0)]


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (":9109", ("127.0.0.1", 9109)),
        ("80", ("127.0.0.1", 80)),
        ("0.0.0.0:1", ("0.0.0.0", 1)),
        ("[::1]:9", ("::1", 9)),
    ],
)
def test_an_address_without_a_host_is_this_machine_alone(
    text: str, address: tuple[str, int]
) -> None:
    assert metrics.parse_address(text) == address


@pytest.mark.parametrize("text", ["", ":", "x", ":99999", "host:", ":-1"])
def test_what_is_no_address_is_refused(text: str, tmp_path: Path) -> None:
    done = command(["live", "--prometheus", text, "a.tlm"], tmp_path)

    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    assert b"give :PORT or HOST:PORT" in done.stderr


def test_without_the_library_one_sentence_says_what_to_install(
    running: tuple[Path, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)

    with pytest.raises(TlmemError, match=r"pip install 'tlmem\[prometheus\]'\.$"):
        metrics.serve(running[0], ("127.0.0.1", 0))


def test_a_port_that_is_taken_is_said(running: tuple[Path, int]) -> None:
    server, port = metrics.serve(running[0], ("127.0.0.1", 0))
    with pytest.raises(TlmemError, match=f"cannot listen on 127.0.0.1:{port} .*another port"):
        metrics.serve(running[0], ("127.0.0.1", port))
    server.shutdown()
    server.server_close()
