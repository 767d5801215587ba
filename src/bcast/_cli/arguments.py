"""The arguments of the command line."""

import argparse
import math
import re
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import bcast
from bcast._cli.printing import say
from bcast._rules.alignment import MODES
from bcast._rules.arguments import CASTINGS

__all__ = ["parsed"]

MODES_HELP = """\
modes:
  numpy          shapes are aligned at the right; axes of length 1 stretch
  explicit       by --axes-mapping (where each axis of the data goes)
                 or by --broadcast-axes (which axes of the output are new)
  bidirectional  as numpy, but axes of length 1 in --shape stretch too
  pdpd           the data, without its trailing 1s, is aligned with --shape from --axis on
  none           nothing is broadcast; the shapes must be equal

examples:
  python -m bcast apply bias.npy out.npy --shape 1,16,50,50 --mode explicit --axes-mapping 1
  python -m bcast apply mask.npy out.zarr --shape 1000,2160,3840 --chunks 1,-1,-1 --max-memory 256MB
"""


def parsed(argv: Sequence[str], name: str) -> argparse.Namespace:
    """Parse the arguments after the program's name.

    Parameters
    ----------
    argv : sequence of str
        The arguments.
    name : str
        The program's name, for its help.

    Returns
    -------
    argparse.Namespace
        `command`, None if there is none, and what it takes.

    Raises
    ------
    ValueError
        If they cannot be understood.
    SystemExit
        After ``--help`` and ``--version``.
    """
    return _parser(name).parse_args(_joined(argv))


class Parser(argparse.ArgumentParser):
    """A parser that raises its errors, so that all bad input is reported in one line."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(message)

    def _print_message(self, message: str, _: Any = None) -> None:
        say(message, end="")


def _parser(name: str) -> Parser:
    parser = Parser(
        prog=name,
        description="Broadcast arrays. Without a command, check the worked examples of the specifications that bcast "
        "implements, and print a short table of its speed on this machine.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"bcast {bcast.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")

    apply = _writing(
        commands,
        "apply",
        "broadcast the array in a file",
        "Broadcast the array in IN and write the result to OUT, which appears only when it is whole.\n"
        "Either may be larger than memory, and either may be a .npy file or an array in Zarr's format.",
        MODES_HELP,
    )
    apply.add_argument(
        "--shape", type=_integers, required=True, metavar="N,N,...", help='the shape to broadcast to; "" for a scalar'
    )
    apply.add_argument("--mode", choices=MODES, default="numpy", help="the rule (default: %(default)s)")
    apply.add_argument(
        "--axes-mapping", type=_integers, metavar="N,N,...", help="mode explicit: the output axis of each data axis"
    )
    apply.add_argument(
        "--broadcast-axes", type=_integers, metavar="N,N,...", help="mode explicit: the output axes that the data lacks"
    )
    apply.add_argument(
        "--axis",
        type=int,
        default=-1,
        metavar="N",
        help="mode pdpd: where the data begins (default: aligned at the right)",
    )
    for option, what in (("--chunks", "a chunk"), ("--shards", "a shard, a file of many chunks")):
        apply.add_argument(
            option, type=_integers, metavar="N,N,...", help=f"OUT.zarr: the shape of {what}; -1: the whole axis"
        )

    tile = _writing(
        commands,
        "tile",
        "repeat the whole of the array in a file",
        "Repeat the whole of the array in IN, as numpy.tile does, and write the result to the .npy file OUT.",
    )
    tile.add_argument(
        "--reps", type=_integers, required=True, metavar="N,N,...", help="how often along each axis, the last ones last"
    )

    repeat = _writing(
        commands,
        "repeat",
        "repeat each item of the array in a file",
        "Repeat each item of the array in IN, as numpy.repeat does, and write the result to the .npy file OUT.",
    )
    repeat.add_argument(
        "--repeats", type=_integers, required=True, metavar="N,N,...", help="how often: once for all, or for each axis"
    )
    repeat.add_argument(
        "--axis", type=_integers, metavar="N,N,...", help="the axes (default: the result has one axis, with all items)"
    )

    run = commands.add_parser(
        "run",
        help="run a program with NumPy's functions replaced by those of bcast",
        usage=f"{name} run [-h] [--names NAME,...] [--counts] (SCRIPT | -m MODULE) ...",
        description="Run a Python program with numpy.tile, numpy.repeat and numpy.meshgrid replaced, as "
        "bcast.patch_numpy replaces them. What follows the script or the module is for the program.",
        allow_abbrev=False,
    )
    run.add_argument("--names", metavar="NAME,...", help="the functions to replace; broadcast_arrays has to be named")
    run.add_argument("--counts", action="store_true", help="print how many calls were taken when the program has ended")
    run.add_argument("-m", dest="module", nargs=argparse.REMAINDER, metavar="MODULE ...", help="a module to run")
    run.add_argument("program", nargs=argparse.REMAINDER, metavar="SCRIPT ...", help="a script to run")

    bench = commands.add_parser(
        "bench",
        help="measure bcast on this machine",
        description="Print a table of bcast's speed on this machine, compared with NumPy and with the installed "
        "libraries that can broadcast.",
        allow_abbrev=False,
    )
    bench.add_argument(
        "--seconds", type=_seconds, default=20.0, metavar="N", help="seconds to measure for (default: %(default)g)"
    )
    return parser


def _writing(commands: Any, name: str, help: str, description: str, epilog: str | None = None) -> Parser:  # noqa: A002
    """Add a command that reads one file and writes another."""
    parser: Parser = commands.add_parser(
        name,
        help=help,
        description=f"{description}\nFiles that killed runs have left in OUT's folder are removed.",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "source", metavar="IN", type=_name, help="a .npy file, or a folder with a Zarr array; - for stdin"
    )
    parser.add_argument(
        "destination",
        metavar="OUT",
        type=_name,
        help="the .npy file to write, which may be IN; - for stdout; for apply, a new OUT.zarr, too",
    )
    parser.add_argument("--dtype", metavar="NAME", help="OUT's dtype, such as float32 or <f4 (default: that of IN)")
    parser.add_argument(
        "--casting",
        choices=CASTINGS,
        default="same_kind",
        help="which conversions --dtype may ask for, as numpy.can_cast names them (default: %(default)s)",
    )
    parser.add_argument(
        "--max-memory",
        type=_size,
        metavar="SIZE",
        help="print how much memory the run takes at most, and refuse to run if that is more than SIZE, such as 256MB",
    )
    parser.add_argument("--no-clobber", dest="clobber", action="store_false", help="refuse to replace OUT")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors and warnings")
    return parser


def _joined(argv: Sequence[str]) -> list[str]:
    """Join a value that begins like a negative number to its option: argparse takes ``-1,3`` for another option."""
    joined: list[str] = []
    for item in argv:
        if joined[:1] != ["run"] and joined and re.fullmatch("--[a-z-]+", joined[-1]) and re.match("-[0-9]", item):
            joined[-1] += f"={item}"
        else:
            joined.append(item)
    return joined


def _name(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("expected the name of a file, got ''")
    return text


def _integers(text: str) -> tuple[int, ...]:
    """Read ``1,16,50``; as in Python, brackets around it and a comma at its end are allowed."""
    inner = text.strip()
    if inner[:1] + inner[-1:] in ("()", "[]"):
        inner = inner[1:-1].strip()
    try:
        return tuple([int(item) for item in inner.removesuffix(",").split(",")]) if inner else ()
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected integers between commas, got {text!r}") from None


def _size(text: str) -> int:
    """Read a number of bytes, such as ``256MB`` or ``1.5 GiB``."""
    match = re.fullmatch(r"([0-9]+\.?[0-9]*|\.[0-9]+) ?([kmgt]?)(i?)b?", text.strip(), re.IGNORECASE)
    if not match or (match[3] and not match[2]):
        raise argparse.ArgumentTypeError(f"expected a size such as 256MB or 1GiB, got {text!r}")
    size = float(match[1]) * (1024 if match[3] else 1000) ** " kmgt".index(match[2].lower() or " ")
    return int(min(size, sys.maxsize))


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 1 <= seconds < math.inf:
        raise argparse.ArgumentTypeError(f"expected a finite number of seconds, at least 1, got {text!r}")
    return seconds
