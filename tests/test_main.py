"""The command line: what it takes, and one line on whatever is wrong."""

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

BAD = ("empty", "text", "broken", "boundless", "deep", "truncated", "objects")  # in the fixture `bad_files`


# Bad input: the arguments after `apply`, and the beginning of the line without `bcast: error: `.
SHAPE, INTEGERS = "`shape` expected ", "argument --shape: invalid integers value: "
MAPPING, AXES = "--mode explicit --axes-mapping", "--mode explicit --broadcast-axes"
REFUSED = {
    "no_file": ("none.npy out.npy --shape 3", "none.npy: No such file or directory"),
    "newline_in_a_name": ("no\nne.npy out.npy --shape 3", "no ne.npy: "),
    "no_name": (" out.npy --shape 3", NOT_REGULAR),
    "folder_for_a_file": (". out.npy --shape 3", NOT_REGULAR),
    "device": (f"{os.devnull} out.npy --shape 3", NOT_REGULAR),
    **{name: (f"{name}.npy out.npy --shape 3", f"{NOT_NPY}{name}.npy: ") for name in BAD},
    "npz": ("in.npz out.npy --shape 3", NOT_NPY),
    "out_is_a_folder": ("in.npy . --shape 3", ".: Is a directory"),
    "out_with_a_slash": ("in.npy out.npy/ --shape 3", "out.npy/: Is a directory"),
    "new_out_with_a_slash": ("in.npy new.npy/ --shape 3", "new.npy/: Is a directory"),
    "out_in_no_folder": ("in.npy none/out.npy --shape 3", "none/out.npy: No such file or directory"),
    "out_in_a_file": ("in.npy in.npy/out.npy --shape 3", None),
    "misfit": ("in.npy out.npy --shape 2,4", SHAPE),
    "negative": ("in.npy out.npy --shape=-1,3", SHAPE),
    "negative_axes": (f"in.npy out.npy --shape 3 {AXES}=-1,2", "`broadcast_axes` expected "),
    "no_value": ("in.npy out.npy --shape --mode numpy", "argument --shape: expected one argument"),
    **{text: (f"in.npy out.npy --shape {text}", INTEGERS) for text in ("2x3", "2.0,3", ",", "2,,3", "(2,3")},
    "too_many_bytes": (f"in.npy out.npy --shape {2**60},3", SHAPE),
    "too_many_bytes_of_an_empty_output": (f"in.npy out.npy --shape 0,{2**61},3", SHAPE),
    "no_shape": ("in.npy out.npy", "the following arguments are required: --shape"),
    "no_files": ("--shape 3", "the following arguments are required: IN, OUT"),
    "mode": ("in.npy out.npy --shape 3 --mode edge", "argument --mode: invalid choice: 'edge'"),
    "abbreviation": ("in.npy out.npy --sha 3", None),
    "axes_out_of_range": (f"in.npy out.npy --shape 3 {MAPPING} 1", "`axes_mapping` expected "),
}


@pytest.mark.parametrize(("arguments", "message"), REFUSED.values(), ids=REFUSED)
@pytest.mark.usefixtures("bad_files")
def test_bad_input_is_refused_by_one_line(run, folder, arguments, message):
    check_refused(run, folder, ["apply", *arguments.split(" ")], message)


# The other commands.


@pytest.fixture
def tables(monkeypatch):
    """Put a stand-in for the benchmark, which takes seconds; give the calls it gets."""
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
    for seconds in ("0.99", "-1e-3", "nan", "inf", "soon"):
        status, out, err = run("bench", "--seconds", seconds)
        assert (status, out, err.startswith("bcast: error: argument --seconds: ")) == (2, "", True)
    monkeypatch.setitem(sys.modules, "bcast._benchmark.table", SimpleNamespace(table=fail_with(KeyboardInterrupt())))
    assert run("bench") == (130, "", "bcast: interrupted\n")
    assert run("broadcast")[0] == 2
    for arguments in (["--version"], ["--help"], ["apply", "--help"]):
        assert run(*arguments)[::2] == (0, "")


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


COMMANDS = {"apply": ["-u", "-m", "bcast", "apply", "in.npy", "out.npy", "--shape", "2,3"], "check": ["-m", "bcast"]}


@posix
@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
def test_closed_pipe(arguments):
    np.save("in.npy", np.arange(3.0))
    end, pipe = os.pipe()
    os.close(end)
    try:
        assert status_and_stderr(*arguments, stdout=pipe) == (141, "")
    finally:
        os.close(pipe)


full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")


@full
@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
def test_full_stdout(arguments):
    np.save("in.npy", np.arange(3.0))
    message = f"bcast: error: standard output: {os.strerror(errno.ENOSPC)}\n"
    with Path("/dev/full").open("w") as device:
        assert status_and_stderr(*arguments, stdout=device) == (2, message)


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
