"""The command line: ``python -m bcast``."""

import argparse
import io
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import bcast
from bcast._cli.arguments import parsed
from bcast._cli.printing import complain, refuse, say

INTERRUPTED = 130  # 128 + SIGINT, as in a shell

SHORT_SECONDS = 5.0


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
            arguments = parsed(sys.argv[1:] if argv is None else argv, name)
        except ValueError as error:
            return refuse(error)
        if arguments.command != "run":
            commands = {"bench": _bench, None: _check}
            return commands.get(arguments.command, _write)(arguments)
    except KeyboardInterrupt:
        complain("interrupted")
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

    program = [*(arguments.module or ()), *arguments.program]
    try:
        if not program:
            raise ValueError("expected a script, or -m and a module")
        path = find(program[0], arguments.module is not None)
        patch = bcast.patched_numpy(*([] if arguments.names is None else [arguments.names.split(",")]))
    except (OSError, ImportError, ValueError) as error:
        return refuse(error)
    run(program, arguments.module is not None, path, patch, complain if arguments.counts else None)
    return 0


def _write(arguments: argparse.Namespace) -> int:
    """Run `apply`, `tile` or `repeat`."""
    from bcast._cli.apply import Options, apply, repeat, tile
    from bcast._cli.progress import size_text
    from bcast._cli.streams import STREAM, named

    given = vars(arguments)
    options = Options(**{name: given[name] for name in given if name in Options._fields}, tell=complain)
    try:
        with named(arguments.source, arguments.destination) as files:
            if arguments.command == "tile":
                written = tile(*files, arguments.reps, options)
            elif arguments.command == "repeat":
                written = repeat(*files, arguments.repeats, arguments.axis, options)
            else:
                rules = {name: given[name] for name in ("axes_mapping", "mode", "axis", "broadcast_axes")}
                written = apply(*files, arguments.shape, options, **rules)
    except (OSError, ValueError, TypeError, MemoryError, ImportError, RuntimeError) as error:
        return refuse(error)
    if not arguments.quiet:
        tell = complain if arguments.destination == STREAM else say
        tell(f"{arguments.destination}: shape {written.shape}, dtype {written.dtype}, {size_text(written.nbytes)}")
    return 0


def _bench(arguments: argparse.Namespace) -> int:
    say(_table(seconds=arguments.seconds))
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
        say(f"{page}: {passed} of {len(examples)} examples pass")
        failures += failed
    for line in failures:
        say(f"FAILED {line}")
    say()
    say(_table(seconds=SHORT_SECONDS, short=True))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(script("python -m bcast"))
