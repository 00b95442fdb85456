"""``tlmem plot``: draw a recording."""

from __future__ import annotations

import os

from tlmem.cli.arguments import add_range, new_parser


def run(words: list[str]) -> int:
    """Runs ``tlmem plot FILE``."""
    parser = new_parser("plot", "Draws a recording as PNG, SVG or PDF.")
    parser.add_argument("file", metavar="FILE", help="a recording")
    parser.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        help="a file that ends in .png, .svg or .pdf (default: FILE's name, the kind and .png, in "
        "this directory)",
    )
    parser.add_argument(
        "--kind",
        choices=("memory", "sites", "objects", "pool", "growth", "all"),
        default="memory",
        help="memory: resident memory by what it is; sites: tracked memory by line; objects: "
        "lifetimes; pool: what pools keep and serve; growth: what grows, with its slope; all: each "
        "of them for which there is something. Default: %(default)s",
    )
    parser.add_argument(
        "--by",
        choices=("role", "line"),
        help="tracked memory over time by what PyTorch uses it for (weights, gradients, "
        "activations ...) with the peak marked, or by line as --kind sites; with --kind memory or "
        "sites",
    )
    parser.add_argument(
        "--memory",
        metavar="NAME",
        help="with --by role: host, or a device's name, as cuda:0 (default: where PyTorch's peak "
        "is highest)",
    )
    parser.add_argument(
        "--size", metavar="WxH", help="1600x900 (pixels), 16x9cm, 8x5in; default: 1440x672"
    )
    add_range(parser)
    parser.add_argument("-f", "--force", action="store_true", help="overwrite OUT")
    given = parser.parse_args(words)
    from tlmem.report import plots

    stem = os.path.basename(given.file).removesuffix(".tlm") or "tlmem"
    out = given.output or f"{stem}-{plots.BY.get(given.by, given.kind)}.png"
    return plots.run(
        given.file,
        out,
        given.kind,
        given.size,
        given.since,
        given.until,
        given.force,
        given.by,
        given.memory,
    )
