"""The command line: its arguments, and one line for each error."""

import errno
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from _commands import NOT_NPY, NOT_REGULAR, check_refused, fail_with, posix, python

import bcast

pytestmark = pytest.mark.usefixtures("folder")

# Commands that are refused, and the beginning of the line about each, without `bcast: error: `. What argparse refuses,
# and what no function of the library takes, has one row each.
APPLY = "apply in.npy out.npy --shape"
REFUSED = {
    "no_file": ("apply none.npy out.npy --shape 3", "none.npy: No such file or directory"),
    "newline_in_a_name": ("apply no\nne.npy out.npy --shape 3", "no ne.npy: "),
    "no_name": ("apply  out.npy --shape 3", NOT_REGULAR),
    "folder_for_a_file": ("apply . out.npy --shape 3", NOT_REGULAR),
    "device": (f"apply {os.devnull} out.npy --shape 3", NOT_REGULAR),
    **{
        name: (f"apply {name}.npy out.npy --shape 3", f"{NOT_NPY}{name}.npy: ")
        for name in ("text", "boundless", "deep", "truncated", "objects")
    },
    "out_is_a_folder": ("apply in.npy . --shape 3", ".: Is a directory"),
    "out_with_a_slash": ("apply in.npy new.npy/ --shape 3", "new.npy/: Is a directory"),
    "out_in_no_folder": ("apply in.npy none/out.npy --shape 3", "none/out.npy: No such file or directory"),
    "out_in_a_file": ("apply in.npy in.npy/out.npy --shape 3", None),
    "misfit": (f"{APPLY} 2,4", "`shape` expected "),
    "too_many_bytes": (f"{APPLY} {2**60},3", "`shape` expected "),
    "too_many_bytes_of_an_empty_output": (f"{APPLY} 0,{2**61},3", "`shape` expected "),
    "no_integers": (f"{APPLY} 2x3", "argument --shape: invalid integers value: "),
    "mode": (f"{APPLY} 3 --mode edge", "argument --mode: invalid choice: 'edge'"),
    "conversion": (f"{APPLY} 2,3 --dtype=i4", "`dtype` expected "),
    "objects_for_items": (f"{APPLY} 2,3 --dtype=O", "`dtype` expected "),
    "reps_below_0": ("tile in.npy out.npy --reps 2,-1", "`reps` expected "),
    "reps_beyond_any_size": (f"tile in.npy out.npy --reps {2**62}", "`reps` expected "),
    "repeats_without_axes": ("repeat in.npy out.npy --repeats 2,3", "`repeats` expected "),
    "repeats_for_more_axes": ("repeat in.npy out.npy --repeats 2,3 --axis 0", "`repeats` expected "),
    "axis": ("repeat in.npy out.npy --repeats 2 --axis 1", "`axis` expected "),
}


@pytest.mark.parametrize(("arguments", "message"), REFUSED.values(), ids=REFUSED)
@pytest.mark.usefixtures("bad_files")
def test_errors_are_one_line(run, folder, arguments, message):
    check_refused(run, folder, arguments.split(" "), message)


# The other commands.


@pytest.fixture
def tables(monkeypatch):
    """Replace the benchmark, which takes seconds; return the calls that the replacement gets."""
    calls = []
    stand_in = SimpleNamespace(table=lambda **options: calls.append(options) or "a table")
    monkeypatch.setitem(sys.modules, "bcast._benchmark.table", stand_in)
    return calls


def test_without_a_command(run, tables):
    assert run() == (0, "a table\n", "")
    assert tables == [{"seconds": 5.0, "short": True}]


def test_bench(run, tables, monkeypatch):
    assert run("bench", "--seconds", "2.5") == (0, "a table\n", "")
    assert tables == [{"seconds": 2.5}]
    for seconds in ("0.99", "nan"):
        status, out, err = run("bench", "--seconds", seconds)
        assert (status, out, err.startswith("bcast: error: argument --seconds: ")) == (2, "", True)
    monkeypatch.setitem(sys.modules, "bcast._benchmark.table", SimpleNamespace(table=fail_with(KeyboardInterrupt())))
    assert run("bench") == (130, "", "bcast: interrupted\n")
    assert run("apply", "--help")[::2] == (0, "")


# As a process.


def test_the_command_line_works_as_a_process(folder):
    name = "β.npy"
    np.save("in.npy", np.arange(16.0))
    options = ["--shape", "1,16,50,50", "--mode", "explicit", "--axes-mapping", "1"]
    done = python("-m", "bcast", "apply", "in.npy", name, *options, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("\\u03b2.npy: ")
    expected = np.broadcast_to(np.arange(16.0).reshape(1, 16, 1, 1), (1, 16, 50, 50))
    np.testing.assert_array_equal(np.load(folder / name), expected, strict=True)
    done = python("-m", "bcast", "apply", "in.npy", name, "--shape", "3")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("bcast: error: `shape` expected")
    assert done.stderr.count("\n") == 1


COMMAND = ["-u", "-m", "bcast", "apply", "in.npy", "out.npy", "--shape", "2,3"]


@posix
def test_closed_pipe():
    np.save("in.npy", np.arange(3.0))
    end, pipe = os.pipe()
    os.close(end)
    try:
        assert status_and_stderr(*COMMAND, stdout=pipe) == (141, "")
    finally:
        os.close(pipe)


full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")


@full
def test_full_stdout():
    np.save("in.npy", np.arange(3.0))
    message = f"bcast: error: standard output: {os.strerror(errno.ENOSPC)}\n"
    with Path("/dev/full").open("w") as device:
        assert status_and_stderr(*COMMAND, stdout=device) == (2, message)


@full
def test_full_stderr():
    with Path("/dev/full").open("w") as device:
        assert python("-m", "bcast", "apply", stderr=device).returncode == 2


def status_and_stderr(*arguments, **options):
    done = python(*arguments, **options)
    return done.returncode, done.stderr


def test_imports_are_lazy():
    code = "import sys, bcast.__main__ as m\ntry: m.main(['bench', '--seconds', 'x'])\nexcept SystemExit: pass\n"
    code += "print(sorted(n for n in sys.modules if n.startswith(('bcast._cli', 'bcast._benchmark'))))"
    done = python("-c", code)
    assert done.stdout == "['bcast._cli', 'bcast._cli.arguments', 'bcast._cli.streams']\n"


def test_bench_for_real():
    done = python("-m", "bcast", "bench", "--seconds", "1")
    assert done.returncode == 0, done.stderr
    assert f"bcast {bcast.__version__}" in done.stdout
    assert np.__version__ in done.stdout
