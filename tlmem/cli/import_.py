"""``tlmem import``: make a recording from a memory snapshot of PyTorch."""

from __future__ import annotations

from tlmem.cli.arguments import new_parser


def run(words: list[str]) -> int:
    """Runs ``tlmem import FILE``."""
    parser = new_parser(
        "import",
        "Makes a recording from a memory snapshot of PyTorch, which every other command reads. "
        "Nothing in the snapshot is run.",
    )
    parser.add_argument(
        "file",
        metavar="FILE",
        help="what torch.cuda.memory._dump_snapshot wrote, plain or in gzip",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        help="where to write (default: FILE's name with .tlm, in this directory)",
    )
    parser.add_argument("-f", "--force", action="store_true", help="overwrite OUT")
    given = parser.parse_args(words)
    from tlmem import importing

    return importing.run(given.file, given.output, given.force)
