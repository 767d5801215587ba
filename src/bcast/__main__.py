"""The command line: ``python -m bcast``. In: arguments as typed. Out: an exit status."""

import argparse
import io
import sys
from collections.abc import Sequence

import bcast
from bcast._cli.arguments import parser_of
from bcast._cli.streams import STREAM, fail, named, print_line, warn


def main(argv: Sequence[str] | None = None, name: str = "python -m bcast") -> int:
    """Run the command line, by default with the arguments of the process; `name` is the program's, for its help.

    Return the exit status: 0; 2 on bad files; 130 after an interrupt.
    """
    try:
        arguments = parser_of(name).parse_args(argv)
        if arguments.command != "run":
            return (_bench if arguments.command in ("bench", None) else _write)(arguments)
    except KeyboardInterrupt:
        warn("interrupted")
        return 130  # 128 + SIGINT, as in a shell
    return _run(arguments)


def script(name: str = "bcast") -> int:
    """Run the command line as the script `bcast`; return the exit status."""
    # A file's name may have characters that the terminal lacks. What a program prints is its own matter.
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.argv[1:2] != ["run"]:
        sys.stdout.reconfigure(errors="backslashreplace")
    return main(name=name)


def _run(arguments: argparse.Namespace) -> int:
    from bcast._cli.run import find, run

    program = [*(arguments.module or ()), *arguments.program]
    try:
        if not program:
            raise ValueError("expected a script, or -m and a module")
        path = find(program[0], arguments.module is not None)
        patch = bcast.patched_numpy(*([] if arguments.names is None else [arguments.names.replace(" ", "").split(",")]))
    except (OSError, ImportError, ValueError) as error:
        return fail(error)
    run(program, arguments.module is not None, path, patch, arguments.counts)
    return 0


def _write(arguments: argparse.Namespace) -> int:
    """Run `apply`, `tile` or `repeat`."""
    from bcast._cli.apply import write
    from bcast._cli.signals import DeferredSignals

    try:
        with DeferredSignals() as signals, named(arguments.source, arguments.target, signals.wait) as files:
            shape, dtype = write(*files, arguments, signals.check)
    except (OSError, ValueError, TypeError, MemoryError, ImportError, RuntimeError) as error:
        return fail(error)
    if not arguments.quiet:
        (warn if arguments.target == STREAM else print_line)(f"{arguments.target}: shape {shape}, dtype {dtype}")
    return 0


def _bench(arguments: argparse.Namespace) -> int:
    from bcast._benchmark.table import table

    print_line(table(seconds=arguments.seconds) if arguments.command else table(seconds=5.0, short=True))
    return 0


if __name__ == "__main__":
    sys.exit(script("python -m bcast"))
