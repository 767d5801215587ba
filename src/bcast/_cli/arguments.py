"""The arguments of the command line. In: words as typed. Out: a namespace of values."""

import argparse
import sys
from typing import Any, NoReturn

import bcast
from bcast._api.patching import DEFAULT_NAMES, OTHER_NAMES
from bcast._cli.streams import fail, print_line
from bcast._rules.alignment import MODES
from bcast._rules.arguments import CASTINGS

MODES_HELP = "modes:\n" + "".join(f"  {mode.name:13}  {form.rule}\n" for mode in MODES for form in mode.forms)


class Parser(argparse.ArgumentParser):
    """A parser that reports bad input in one line."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        raise SystemExit(fail(ValueError(message)))

    def _print_message(self, message: str, _: Any = None) -> None:
        print_line(message, end="")


def parser_of(name: str) -> Parser:
    """Return the parser of a program called `name`; `command` is None if there is none."""
    what = "Broadcast arrays. Without a command, print a short table of speeds."
    parser = Parser(prog=name, description=what)
    parser.add_argument("--version", action="version", version=f"bcast {bcast.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")

    apply = _writing(commands, "apply", "broadcast the array in a file")
    add = apply.add_argument
    add("--shape", type=integers, required=True, metavar="N,N,...", help='the shape to broadcast to; "" for a scalar')
    add("--mode", choices=[mode.name for mode in MODES], help="the rule (default: what the axes imply, or numpy)")
    add("--axes-mapping", type=integers, metavar="N,N,...", help="explicit: the output axis of each data axis")
    add("--broadcast-axes", type=integers, metavar="N,N,...", help="explicit: the output axes that the data lacks")
    add("--axis", type=int, default=-1, metavar="N", help="pdpd: where the data begins (default: aligned on the right)")

    tile = _writing(commands, "tile", "repeat the whole array in a file, like numpy.tile")
    tile.add_argument("--reps", type=integers, required=True, metavar="N,N,...", help="the repetitions along each axis")

    repeat = _writing(commands, "repeat", "repeat each item of the array in a file, like numpy.repeat")
    add = repeat.add_argument
    add(
        "--repeats",
        type=integers,
        required=True,
        metavar="N,N,...",
        help="the repetitions: one number for all axes, or one for each",
    )
    add("--axis", type=integers, metavar="N,N,...", help="the axes (default: one axis with all items)")

    usage = f"{name} run [-h] [--names NAME,...] [--counts] (SCRIPT | -m MODULE) ..."
    what = "run a program with bcast's functions in place of NumPy's; arguments after it go to the program"
    run = commands.add_parser("run", help=what, description=what, usage=usage)
    others = f"other names: {', '.join(OTHER_NAMES)}, and each ufunc, such as add"
    chosen = f"the functions to replace (default: {','.join(DEFAULT_NAMES)}); {others}"
    run.add_argument("--names", metavar="NAME,...", help=chosen)
    what = "at the end, print how many calls of each function bcast took, and how many went to NumPy and why"
    run.add_argument("--counts", action="store_true", help=what)
    run.add_argument("-m", dest="module", nargs=argparse.REMAINDER, metavar="MODULE ...", help="a module to run")
    run.add_argument("program", nargs=argparse.REMAINDER, metavar="SCRIPT ...", help="a script to run")

    bench = commands.add_parser("bench", help="compare bcast on this machine with NumPy")
    bench.add_argument(
        "--seconds", type=seconds, default=20.0, metavar="N", help="the time to measure (default: %(default)g)"
    )
    return parser


def _writing(commands: Any, name: str, what: str) -> Parser:
    """Add a command that reads one file and writes another."""
    parser: Parser = commands.add_parser(name, help=what, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.description = f"{what.capitalize()}. Join a value that begins with a minus by =: --axis=-1"
    parser.epilog = MODES_HELP if name == "apply" else None
    add = parser.add_argument
    add("source", metavar="IN", help="a .npy file; - for stdin")
    add("target", metavar="OUT", help="the file to write, which may be IN; - for stdout")
    add("--dtype", metavar="NAME", help="OUT's dtype, such as float32 or <f4 (default: that of IN)")
    add("--casting", choices=CASTINGS, default="same_kind", help="the allowed conversions (default: %(default)s)")
    add("--no-clobber", dest="clobber", action="store_false", help="refuse to replace OUT")
    add("--quiet", action="store_true", help="print nothing but errors and warnings")
    return parser


def integers(text: str) -> tuple[int, ...]:
    """Read ``1,16,50``."""
    return tuple([int(item) for item in text.split(",")]) if text else ()


def seconds(text: str) -> float:
    """Read a finite number, at least 1."""
    if not 1 <= float(text) <= sys.maxsize:
        raise ValueError
    return float(text)
