"""A run of `apply` that is killed at its fourth piece, or that waits there for a line on stdin.

A program of its own: ``python _halfway.py kill|wait IN OUT --shape SHAPE``.
"""

import os
import signal
import sys

from bcast.__main__ import main
from bcast._cli import apply as cli_apply

convert_onto = cli_apply.convert_onto
calls = []


def stand_in(*arguments):
    calls.append(arguments)
    if len(calls) == 4 and sys.argv[1] == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if len(calls) == 4:
        print("halfway", flush=True)
        sys.stdin.readline()
    convert_onto(*arguments)


if __name__ == "__main__":
    cli_apply.PIECE = 24
    cli_apply.convert_onto = stand_in
    sys.exit(main(["apply", *sys.argv[2:]]))
