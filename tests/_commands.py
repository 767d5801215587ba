"""Helpers for tests of the command line, and for all tests that start a new Python process."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bcast._api import converted
from bcast._cli import apply

OLD = b"what was there before"
NOT_NPY = "`IN` expected a whole .npy file, without objects, got "
NOT_REGULAR = "`IN` expected a regular .npy file, neither pipe, device nor directory, got"

posix = pytest.mark.skipif(sys.platform == "win32", reason="has neither such permissions nor such links")


def files(folder="."):
    return sorted(path.name for path in Path(folder).iterdir())


def succeed(run, *arguments):
    status, out, err = run("apply", *arguments)
    assert (status, err) == (0, "")
    return out


def python(*arguments, **options):
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "timeout": 300, **options}
    return subprocess.run([sys.executable, *arguments], text=True, encoding="utf-8", **options)


def printed(*arguments, **environment):
    """Run Python, which must complain of nothing; return what it prints."""
    done = python(*arguments, env=os.environ | environment)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def save_header(path, shape, dtype, version=3, edit=("", "")):
    """Write an array of zeros with a header that NumPy itself would not write."""
    dtype = np.dtype(dtype)
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    text = f"{header}\n".replace(*edit).encode()
    with Path(path).open("wb") as file:
        file.write(np.lib.format.magic(version, 0) + len(text).to_bytes(2 if version == 1 else 4, "little") + text)
        file.write(bytes(dtype.itemsize * int(np.prod(shape))))


def check_refused(run, folder, arguments, message):
    before = files()
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert err.startswith(f"bcast: error: {message or ''}")
    assert err.endswith("\n")
    assert err.count("\n") == 1
    assert (folder / "out.npy").read_bytes() == OLD
    assert files() == before


def fail_with(error):
    def fail(*_, **__):
        raise error

    return fail


def halfway(monkeypatch, act):
    """Call `act` at the fourth of nine pieces; return a list to which each piece adds an item."""
    monkeypatch.setattr(apply, "BLOCK_BYTES", 24)
    calls = []

    def convert_onto(*arguments):
        calls.append(arguments[1])
        if len(calls) == 4:
            act()
        return converted.convert_onto(*arguments)

    monkeypatch.setattr(apply, "convert_onto", convert_onto)
    return calls


def program(name):
    return str(Path(__file__).with_name(name))
