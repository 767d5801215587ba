"""A run of `apply` that gets SIGKILL or SIGINT at its fourth block.

A program of its own: ``python _halfway.py kill|interrupt IN OUT --shape SHAPE``.
"""

import os
import signal
import sys

from bcast.__main__ import main
from bcast._cli import apply as cli_apply

SIGNALS = {"kill": "SIGKILL", "interrupt": "SIGINT"}

convert_onto = cli_apply.convert_onto
calls = []


def stand_in(*arguments):
    calls.append(arguments)
    if len(calls) == 4:
        os.kill(os.getpid(), getattr(signal, SIGNALS[sys.argv[1]]))
    elif len(calls) > 4 and sys.argv[1] == "interrupt":
        print("a piece after the interrupt", file=sys.stderr)
    convert_onto(*arguments)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    cli_apply.BLOCK_BYTES = 24
    cli_apply.convert_onto = stand_in
    sys.exit(main(["apply", *sys.argv[2:]]))
