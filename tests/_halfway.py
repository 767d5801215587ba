"""A run of `apply` that is killed at its fourth piece, or that waits there for a line on stdin.

A program of its own: ``python _halfway.py kill|wait IN OUT --shape SHAPE``.
"""

import os
import signal
import sys

from bcast import _apply
from bcast.__main__ import main

replicate = _apply.replicate
calls = []


def stand_in(*arguments):
    calls.append(arguments)
    if len(calls) == 4 and sys.argv[1] == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if len(calls) == 4:
        print("halfway", flush=True)
        sys.stdin.readline()
    replicate(*arguments)


if __name__ == "__main__":
    _apply.PIECE = 24
    _apply.replicate = stand_in
    sys.exit(main(["apply", *sys.argv[2:]]))
