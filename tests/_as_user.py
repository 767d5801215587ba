"""The command line as another user, which root can be; or an attempt to open files.

A program of its own: ``python _as_user.py UID apply ARGUMENT...`` or ``python _as_user.py UID open FILE...``.
"""

import contextlib
import io
import os
import sys

from bcast.__main__ import main

if __name__ == "__main__":
    user, *arguments = sys.argv[1:]
    with contextlib.redirect_stderr(io.StringIO()):
        main(["apply", "", "", "--shape", ""])  # imports what the other user may have no right to read
        main(["apply", "none", "none", "--shape", ""])
    os.setgroups([])
    os.setgid(int(user))
    os.setuid(int(user))
    if arguments[0] == "apply":
        sys.exit(main(arguments))
    for name in arguments[1:]:
        try:
            os.close(os.open(name, os.O_RDONLY))
            print("opened")
        except PermissionError:
            print("refused")
