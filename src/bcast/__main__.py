"""The command line: ``python -m bcast``."""

import argparse
import io
import math
import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn, TextIO

import bcast
from bcast._rules.alignment import MODES
from bcast._rules.arguments import CASTINGS

BAD_INPUT = 2
INTERRUPTED = 130  # 128 + SIGINT, as in a shell
PIPE_CLOSED = 141  # 128 + SIGPIPE

SHORT_SECONDS = 5.0

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


def main(argv: Sequence[str] | None = None, name: str = "python -m bcast") -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments after the program's name. The default is those of the process.
    name : str, optional
        The program's name, for its help.

    Returns
    -------
    int
        The exit status: 0; 1 if an example fails; 2 on bad input; 130 after an interrupt.

    Raises
    ------
    SystemExit
        After ``--help`` and ``--version``; if nothing can be written to stdout; on a signal to end.
    """
    try:
        try:
            arguments = _parser(name).parse_args(_joined(sys.argv[1:] if argv is None else argv))
        except ValueError as error:
            return _refuse(error)
        if arguments.command != "run":
            return {"apply": _apply, "bench": _bench}.get(arguments.command, _check)(arguments)
    except KeyboardInterrupt:
        _complain("interrupted")
        return INTERRUPTED
    return _run(arguments)


def script(name: str = "bcast") -> int:
    """Run the command line as the script `bcast`; return the exit status."""
    # A file's name may have characters that the terminal lacks. What a program prints is its own matter.
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.argv[1:2] != ["run"]:
        sys.stdout.reconfigure(errors="backslashreplace")
    return main(name=name)


def _run(arguments: argparse.Namespace) -> int:
    from bcast._cli.run import find, run

    program = arguments.module or arguments.program
    try:
        if not program:
            raise ValueError("expected a script, or -m and a module")
        path = find(program[0], arguments.module is not None)
        patch = bcast.patched_numpy(*([] if arguments.names is None else [arguments.names.split(",")]))
    except (OSError, ImportError, ValueError) as error:
        return _refuse(error)
    run(program, arguments.module is not None, path, patch, _complain if arguments.counts else _ignore)
    return 0


def _ignore(_: str) -> None:
    pass


def _apply(arguments: argparse.Namespace) -> int:
    from bcast._cli.apply import apply
    from bcast._cli.progress import size_text

    try:
        written = apply(
            arguments.source,
            arguments.destination,
            arguments.shape,
            dtype=arguments.dtype,
            casting=arguments.casting,
            chunks=arguments.chunks,
            shards=arguments.shards,
            max_memory=arguments.max_memory,
            clobber=not arguments.no_clobber,
            quiet=arguments.quiet,
            tell=_complain,
            axes_mapping=arguments.axes_mapping,
            mode=arguments.mode,
            axis=arguments.axis,
            broadcast_axes=arguments.broadcast_axes,
        )
    except (OSError, ValueError, TypeError, MemoryError, ImportError, RuntimeError) as error:
        return _refuse(error)
    if not arguments.quiet:
        _say(f"{arguments.destination}: shape {written.shape}, dtype {written.dtype}, {size_text(written.nbytes)}")
    return 0


def _bench(arguments: argparse.Namespace) -> int:
    _say(_table(seconds=arguments.seconds))
    return 0


def _table(**options: Any) -> str:
    """Measure; if stderr is a terminal, show a line there that grows."""
    from bcast._benchmark.table import table

    if not sys.stderr.isatty():
        return table(**options)
    text = table(**options, grow=_grow)
    _grow("\n")
    return text


def _grow(text: str) -> None:
    with suppress(OSError):  # the terminal is gone, but stdout may still be there
        print(text, end="", file=sys.stderr, flush=True)


def _check(_: argparse.Namespace) -> int:
    from bcast._cli.conformance import check, load

    failures = []
    for page, examples in load().items():
        passed, failed = check(examples)
        _say(f"{page}: {passed} of {len(examples)} examples pass")
        failures += failed
    for line in failures:
        _say(f"FAILED {line}")
    _say()
    _say(_table(seconds=SHORT_SECONDS, short=True))
    return 1 if failures else 0


class _Parser(argparse.ArgumentParser):
    """A parser that raises its errors, so that all bad input is reported in one line."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(message)

    def _print_message(self, message: str, _: Any = None) -> None:
        _say(message, end="")


def _parser(name: str) -> _Parser:
    parser = _Parser(
        prog=name,
        description="Broadcast arrays. Without a command, check the worked examples of the specifications that bcast "
        "implements, and print a short table of its speed on this machine.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"bcast {bcast.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")

    apply = commands.add_parser(
        "apply",
        help="broadcast the array in a file",
        description="Broadcast the array in IN and write the result to OUT, which appears only when it is whole.\n"
        "Either may be larger than memory, and either may be a .npy file or an array in Zarr's format.\n"
        "Files that killed runs have left in OUT's folder are removed.",
        epilog=MODES_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    apply.add_argument("source", metavar="IN", type=_name, help="a .npy file, or a folder with a Zarr array")
    apply.add_argument(
        "destination", metavar="OUT", type=_name, help="the .npy file to write, which may be IN; or a new OUT.zarr"
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

    apply.add_argument("--dtype", metavar="NAME", help="the dtype of OUT, such as float32 or <f4 (default: that of IN)")
    apply.add_argument(
        "--casting",
        choices=CASTINGS,
        default="same_kind",
        help="which conversions --dtype may ask for, as numpy.can_cast names them (default: %(default)s)",
    )

    for option, what in (("--chunks", "a chunk"), ("--shards", "a shard, a file of many chunks")):
        apply.add_argument(
            option, type=_integers, metavar="N,N,...", help=f"OUT.zarr: the shape of {what}; -1: the whole axis"
        )
    apply.add_argument(
        "--max-memory",
        type=_size,
        metavar="SIZE",
        help="print how much memory the run takes at most, and refuse to run if that is more than SIZE, such as 256MB",
    )

    apply.add_argument("--no-clobber", action="store_true", help="refuse to replace OUT")
    apply.add_argument("--quiet", action="store_true", help="print nothing but errors and warnings")

    bench = commands.add_parser(
        "bench",
        help="measure bcast on this machine",
        description="Print a table of bcast's speed on this machine, compared with NumPy and with the installed "
        "libraries that can broadcast.",
        allow_abbrev=False,
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

    bench.add_argument(
        "--seconds", type=_seconds, default=20.0, metavar="N", help="seconds to measure for (default: %(default)g)"
    )
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


def _refuse(error: Exception) -> int:
    """Report bad input in one line."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        message = f"{error.filename}: {error.strerror}"
    else:
        message = str(error) or ("out of memory" if isinstance(error, MemoryError) else repr(error))
    _complain(f"error: {message}")
    return BAD_INPUT


def _say(text: str = "", end: str = "\n") -> None:
    """Print and flush, so that a failure of stdout is noticed here, not when the interpreter exits."""
    try:
        print(text, end=end, flush=True)
    except OSError as error:
        _discard(sys.stdout)
        if isinstance(error, BrokenPipeError):  # the reader has seen enough
            raise SystemExit(PIPE_CLOSED) from None
        error.filename = "standard output"
        raise SystemExit(_refuse(error)) from None


def _complain(text: str) -> None:
    """Print one line to stderr, if there is one, whatever characters the names in it have."""
    if sys.stderr is None:
        return
    try:
        print(f"bcast: {' '.join(text.split())}", file=sys.stderr, flush=True)
    except OSError:  # only the exit status is left to tell it
        _discard(sys.stderr)


def _discard(stream: TextIO) -> None:
    """Discard a stream's output, including what it still holds and the interpreter would flush."""
    with suppress(OSError):  # from a stream that is not a file
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


if __name__ == "__main__":
    sys.exit(script("python -m bcast"))
