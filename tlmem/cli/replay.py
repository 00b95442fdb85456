"""``tlmem replay``: what a program would have needed under another allocator.

Covers: options, and handing the simulator or the player to the reading side, which does not import
them. Does not cover: the text (``report.replay``, ``report.host_replay``), the picture
(``report.plots.segments``).
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from tlmem.cli.arguments import add_output, new_parser
from tlmem.errors import TlmemError

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording
    from tlmem.replaying.answers import Answer
    from tlmem.replaying.cuda import Figures
    from tlmem.replaying.proof import Proof
    from tlmem.replaying.trace import Trace
    from tlmem.report.replay import Replayed

SIMULATED = ("cuda", "pool")
RUN_HERE = ("glibc", "jemalloc", "mimalloc", "tcmalloc")
MOST_PAUSES_S = 3_600


class NotReproduced(TlmemError):
    """The replay is too far from what the recorded allocator did."""

    exit_code = 1


class NoSimulator(TlmemError):
    """tlmem was installed without its C core."""


class WrongOption(TlmemError):
    """Options that do not go together."""


def run(words: list[str]) -> int:
    """Runs ``tlmem replay FILE``."""
    given = _parser().parse_args(words)
    from tlmem.report import replay, write

    if given.allocator in RUN_HERE:
        return _run_host(given)
    if given.pauses is not None:
        raise WrongOption(
            "--pauses is for allocators that are run; give --allocator with one of "
            f"{', '.join(RUN_HERE)}."
        )
    try:
        import tlmem.replaying.cuda  # noqa: F401
    except ImportError as error:
        raise NoSimulator(
            "tlmem was installed without its C core, which replays; install a C compiler and "
            "Python's headers, and tlmem again."
        ) from error
    found = _found(given)
    if given.plot is not None:
        from tlmem.report import plots
        from tlmem.report.plots import segments

        size = plots.parse_size(given.size) if given.size else None
        drawn = segments.picture(found, plots.format_of(given.plot), size)
        plots.write_picture(drawn, given.plot, given.force)
    if given.format == "html":
        from tlmem.report.html import replay as page

        return write(page.render(found), given.output)
    text = replay.render_json(found) if given.format == "json" else replay.render_text(found)
    return write(text, given.output)


def _run_host(given: argparse.Namespace) -> int:
    """Runs the allocators of a process and prints what they had resident.

    Raises:
        TlmemError: the recording has no host memory, or an allocator cannot be run.
    """
    from tlmem.recording.reader import read_for_command
    from tlmem.replaying import host_allocators
    from tlmem.replaying.host_trace import host_trace
    from tlmem.replaying.hosts import agreement, play
    from tlmem.report import host_replay, write

    if given.format == "html" or given.plot is not None:
        raise WrongOption(
            "an allocator that is run shows no addresses, so there is nothing to draw; --json has "
            "resident memory over time."
        )
    if given.memory not in (None, "host"):
        raise WrongOption(
            f"{given.allocator} is an allocator of host memory, and not of '{given.memory}'; leave "
            "--memory away."
        )
    host_allocators.check_system()
    chosen = host_allocators.settings_for(given.allocator, given.set)
    recording = read_for_command(given.file)
    trace = host_trace(recording, 2.0 if given.pauses is None else given.pauses)
    tried = [host_allocators.settings_for("glibc")]
    tried += host_allocators.swept(chosen) if given.sweep else [chosen]
    tried = [each for n, each in enumerate(tried) if each not in tried[:n]]
    answers = tuple(play(trace, each) for each in tried)
    found = host_replay.HostReplayed(
        recording=recording,
        trace=trace,
        allocator=given.allocator,
        answers=answers,
        agreement=agreement(trace, answers[0]),
        missing=tuple(host_allocators.missing()) if given.sweep else (),
    )
    render = host_replay.render_json if given.format == "json" else host_replay.render_text
    return write(render(found), given.output)


def _seconds(text: str) -> float:
    """Of ``--pauses``."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= MOST_PAUSES_S:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds up to {MOST_PAUSES_S}")
    return seconds


def _found(given: argparse.Namespace) -> Replayed:
    """Everything that is printed.

    Raises:
        TlmemError: the recording cannot be read or replayed, or the replay is not near enough.
    """
    from tlmem.recording.reader import read_for_command
    from tlmem.replaying import answers
    from tlmem.replaying.trace import trace_of
    from tlmem.report.replay import Replayed

    recording = read_for_command(given.file)
    if given.allocator == "pool":
        return _through_pools(given, recording)
    from tlmem.replaying.contradictions import contradiction
    from tlmem.replaying.layout import layout_of
    from tlmem.replaying.proof import prove
    from tlmem.replaying.settings import DEFAULT, recorded_settings
    from tlmem.replaying.stranded import stranded

    recorded, problems = recorded_settings(recording.info)
    changed = recorded.changed(given.set)
    trace = trace_of(recording, given.memory)
    proof = prove(trace)
    if proof is not None and not proof.holds:
        raise NotReproduced(_where_they_part(recording, trace, proof))
    if proof is not None and proof.placed < proof.compared and (found := contradiction(trace)):
        problems = [*problems, f"the snapshot contradicts itself: {found}"]
    tried = [(recorded, trace.imported)]
    if given.set:
        tried.append((changed, False))
    if given.sweep:
        known = {each for each, _ in tried}
        swept = [each for each, _ in answers.settings_to_sweep(None)]
        tried += [(each, False) for each in swept if each not in known]
    answered: list[Answer] = []
    for settings, is_recorded in tried:
        if settings not in [each.settings for each in answered]:
            answered.append(answers.answer(trace, settings, is_recorded))
    shown = changed if given.set else recorded
    return Replayed(
        recording=recording,
        trace=trace,
        allocator="cuda",
        proof=proof,
        answers=tuple(answered),
        best=answers.best(answered) if len(answered) > 1 else None,
        bound_bytes=answers.plan_bound(recording, trace.memory),
        shown=shown.name if shown != DEFAULT else "default settings",
        stranded=stranded(recording, trace, shown),
        layout=layout_of(trace, shown),
        problems=(*problems, *(proof.problems if proof else ())),
    )


def _through_pools(given: argparse.Namespace, recording: Recording) -> Replayed:
    """The same through tlmem's own buffers."""
    from tlmem.replaying import answers, pools
    from tlmem.replaying.trace import trace_of
    from tlmem.report.replay import Replayed

    settings = pools.PoolSettings().changed(given.set)
    trace = trace_of(recording, given.memory)
    tried = pools.sweep(settings) if given.sweep else [settings]
    tried = [settings, *(each for each in tried if each != settings)]

    def through(each: pools.PoolSettings) -> Answer:
        def replay(capacity: int) -> Figures:
            return pools.run(trace, each, capacity)

        return answers.found_by(replay, each, trace.peak_requested)

    found = [through(each) for each in tried]
    return Replayed(
        recording=recording,
        trace=trace,
        allocator="pool",
        proof=None,
        answers=tuple(found),
        best=answers.best(found) if len(found) > 1 else None,
        bound_bytes=answers.plan_bound(recording, trace.memory),
        shown=settings.name,
        stranded=None,
        layout=None,
    )


def _where_they_part(recording: Recording, trace: Trace, proof: Proof) -> str:
    """The sentence of a refusal."""
    from tlmem.replaying.contradictions import contradiction
    from tlmem.replaying.trace import MOST_ERROR
    from tlmem.report.replay import percent
    from tlmem.units import format_bytes, format_seconds

    words = (
        f"{recording.path} is not reproduced: the replay is {percent(proof.error)} of the recorded "
        f"peak of {format_bytes(proof.recorded_peak)} away from what the allocator reserved, more "
        f"than {percent(MOST_ERROR)}, so it says nothing of other settings"
    )
    found = contradiction(trace)
    if found is not None:
        return (
            f"{words}; the snapshot contradicts itself: {found}. Take it again with the trace of "
            "one process from its beginning."
        )
    parting = proof.parting
    if parting is None:
        return f"{words}."
    frame = recording.blame(int(trace.site[parting.block]))
    where = f" at {frame['file']}:{frame['line']}" if frame and frame["file"] else ""
    return (
        f"{words}; they part {format_seconds(parting.time_ns / 1e9)} after the start{where}, where "
        f"{format_bytes(parting.recorded_bytes)} were reserved and the replay has "
        f"{format_bytes(parting.replayed_bytes)}."
    )


def _parser() -> argparse.ArgumentParser:
    parser = new_parser(
        "replay",
        "Shows what a recorded program would have needed under another allocator or other "
        "settings: what is reserved on a roomy device, the smallest device on which the run "
        "completes, and which lines keep segments from being given back. Of a CUDA snapshot, the "
        "replay first proves itself against what the real allocator did. With glibc, jemalloc, "
        "mimalloc or tcmalloc the arrays and tensors in host memory are allocated again by that "
        "allocator in a process of their own, and its resident memory is shown.",
    )
    parser.epilog = (
        "Exit codes: 0 success; 1 the replay is more than 5%% away from the recorded allocator, "
        "and refuses; 2 usage, or a file that cannot be read; 3 a recording with nothing to "
        "replay, or damaged."
    )
    parser.add_argument("file", metavar="FILE", help="a recording, or one made by tlmem import")
    parser.add_argument(
        "--allocator",
        choices=(*SIMULATED, *RUN_HERE),
        default="cuda",
        help="cuda: PyTorch's caching allocator, simulated; pool: tlmem's own buffers, by running "
        "them; glibc, jemalloc, mimalloc, tcmalloc: the malloc of a process, by running it on "
        "Linux (default: %(default)s)",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting as in PYTORCH_ALLOC_CONF, as expandable_segments=True or "
        "max_split_size_mb=128, on top of the recorded ones; of pools policy=NAME and budget=SIZE; "
        "of glibc a tunable as mmap_threshold=1MiB or arena_max=1, of the others a name of their "
        "MALLOC_CONF, MIMALLOC_ or TCMALLOC_; may be given several times",
    )
    parser.add_argument("--sweep", action="store_true", help="try many settings, in one table")
    parser.add_argument(
        "--pauses",
        type=_seconds,
        metavar="SECONDS",
        help="pauses of the program are kept for jemalloc and mimalloc, shortened together to this "
        "(default: 2)",
    )
    parser.add_argument(
        "--memory",
        metavar="NAME",
        help="which memory: host, or a device's name (default: the one with the highest peak)",
    )
    add_output(parser, "text", "json", "html")
    parser.add_argument(
        "--plot",
        metavar="OUT",
        help="draw segments, blocks and holes, address against time, into a .png, .svg or .pdf",
    )
    parser.add_argument(
        "--size", metavar="WxH", help="of the picture: 1600x900 (pixels), 16x9cm, 8x5in"
    )
    parser.add_argument("-f", "--force", action="store_true", help="overwrite a picture")
    return parser
