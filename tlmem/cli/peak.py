"""``tlmem peak``: what memory consisted of at its peak, and what would lower it."""

from __future__ import annotations

from tlmem.cli.arguments import add_output, add_source_root, new_parser


def run(words: list[str]) -> int:
    """Runs ``tlmem peak FILE``."""
    parser = new_parser(
        "peak",
        "Shows what memory consisted of at its peak: weights, gradients, optimizer state, "
        "activations and other roles of PyTorch's blocks, or modules, or lines of the program; "
        "which step and phase that was in; and, by replay, what would have made it lower.",
    )
    parser.add_argument("file", metavar="FILE", help="a recording")
    parser.add_argument(
        "--by",
        choices=("role", "module", "line"),
        help="what the table of the text has a row for (default: role where PyTorch has blocks in "
        "the memory, else line); JSON has all of them",
    )
    parser.add_argument(
        "--at",
        metavar="TIME|MARK",
        help="another moment than the peak: seconds since the start (1.5, 20ms, 1:30), the label "
        "of a mark (of several that at which most was alive), or LABEL:INDEX",
    )
    parser.add_argument(
        "--born",
        metavar="A..B",
        help="only what was allocated between two such moments and is alive at the one of --at "
        "(default: when the program is judged)",
    )
    parser.add_argument(
        "--memory",
        metavar="NAME",
        help="which memory: host, or a device's name, as cuda:0 (default: the one with the highest "
        "peak)",
    )
    add_output(parser, "text", "json")
    add_source_root(parser)
    given = parser.parse_args(words)
    from tlmem.report.peak import run_peak

    return run_peak(
        given.file,
        given.by,
        given.at,
        given.memory,
        given.format,
        given.output,
        given.source_root,
        given.born,
    )
