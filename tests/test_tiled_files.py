"""`tile` and `repeat` of files, and of stdin and stdout in place of files."""

import io
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from _commands import OLD, files, posix
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bcast._cli import apply as cli_apply

pytestmark = pytest.mark.usefixtures("folder")
CASES = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
COUNTS = st.integers(0, 4)


def texts(numbers):
    return ",".join(map(str, numbers))


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(cli_apply, "BLOCK_BYTES", 40)


def saved(shape, dtype, order):
    data = np.asarray(np.arange(np.prod(shape)).reshape(shape) % 251, dtype=dtype, order=order)
    np.save("in.npy", data)
    return data


@CASES
@given(
    shape=st.lists(st.integers(0, 4), max_size=4).map(tuple),
    data=st.data(),
    dtype=st.sampled_from(["u1", "<i2", ">f4", "c16", "S3"]),
    order=st.sampled_from("CF"),
)
@pytest.mark.usefixtures("small_blocks")
def test_tile_and_repeat(run, shape, data, dtype, order):
    reps = data.draw(st.lists(COUNTS, max_size=5))
    axes = data.draw(st.lists(st.sampled_from(range(len(shape))), unique=True) if shape else st.just([]))
    counts = [data.draw(COUNTS) for _ in axes]
    named = [axis - data.draw(st.sampled_from([0, len(shape)])) for axis in axes]
    array = repeated = saved(shape, dtype, order)
    for axis, count in zip(axes, counts, strict=True):
        repeated = repeated.repeat(count, axis)
    options = [f"--repeats={texts(counts)}", f"--axis={texts(named)}"] if axes else ["--repeats=3"]
    for (command, *given_options), expected in (
        (["tile", f"--reps={texts(reps)}"], np.tile(array, reps)),
        (["repeat", *options], repeated if axes else array.repeat(3)),
    ):
        status, _, err = run(command, "in.npy", "out.npy", *given_options)
        assert (status, err) == (0, "")
        result = np.load("out.npy")
        assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
        assert result.tolist() == expected.tolist()


def test_options_are_those_of_apply(run):
    data = saved((2, 3), "u1", "C")
    status, out, err = run("tile", "in.npy", "in.npy", "--reps", "2", "--dtype", "f4", "--quiet")
    assert (status, out, err) == (0, "", "")
    assert np.array_equal(np.load("in.npy"), np.tile(data, 2).astype("f4"))
    status, out, err = run("repeat", "in.npy", "out.npy", "--repeats", "3", "--axis", "0")
    assert (status, out, err) == (0, "out.npy: shape (6, 6), dtype float32\n", "")
    assert run("repeat", "in.npy", "out.npy", "--repeats", "3", "--no-clobber")[0] == 2
    assert np.load("out.npy").shape == (6, 6)


# stdin and stdout.


def piped(*arguments, data=b"", **options):
    command = [sys.executable, "-m", "bcast", *arguments]
    return subprocess.run(command, input=data, capture_output=True, timeout=300, **options)


@pytest.fixture
def temporary(folder, monkeypatch):
    path = folder / "temporary"
    path.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", None)
    for name in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.setenv(name, str(path))
    return path


def test_from_stdin_to_stdout(temporary):
    data = np.arange(15, dtype=">i2").reshape(5, 3)
    np.save("in.npy", data)
    expected, options = np.tile(data, (3, 2)), ["--reps", "3,2"]
    done = piped("tile", "-", "-", *options, data=Path("in.npy").read_bytes())
    np.testing.assert_array_equal(np.load(io.BytesIO(done.stdout)), expected, strict=True)
    assert done.stderr.decode() == f"bcast: -: shape {expected.shape}, dtype >i2\n"
    assert piped("tile", "in.npy", "-", *options, "--quiet").stdout == done.stdout
    assert piped("tile", "-", "out.npy", *options, "--quiet", data=Path("in.npy").read_bytes()).stdout == b""
    np.testing.assert_array_equal(np.load("out.npy"), expected, strict=True)
    assert files(temporary) == []


def test_invalid_npy_files_are_refused(temporary):
    Path("out.npy").write_bytes(OLD)
    done = piped("tile", "-", "out.npy", "--reps", "2", data=b"\x93NUMPY")
    assert done.returncode == 2
    assert done.stderr.startswith(b"bcast: error: `IN` expected ")
    assert Path("out.npy").read_bytes() == OLD
    assert files(temporary) == []


@posix
def test_a_reader_that_closes_its_pipe(temporary):
    np.save("in.npy", np.arange(3.0))
    command = f"{sys.executable} -m bcast tile in.npy - --reps 1000000 | head -c 10 > out; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=300)
    assert (done.stdout, "Traceback" in done.stderr) == ("141\n", False)
    assert files(temporary) == []


# A signal arrives between Python's last look for signals and the call that sleeps, as on a busy machine: `map` makes
# one call after the other, with no look for signals between them.
LATE = """import ctypes, functools, operator, os, select
def late(call, *arguments):
    calls = [functools.partial(ctypes.CDLL(None)["raise"], {number}), functools.partial(call, *arguments)]
    return list(map(operator.call, calls))[1]
select.select, os.read = functools.partial(late, select.select), functools.partial(late, os.read)
"""
WHEN = [(signal.SIGINT, "meanwhile"), (signal.SIGTERM, "meanwhile"), (signal.SIGTERM, "just before")]


@posix
@pytest.mark.parametrize(("number", "when"), WHEN)
def test_a_signal_while_stdin_is_awaited(temporary, number, when):
    is_late = when == "just before"
    with awaiting_stdin(LATE.format(number=int(number)) if is_late else "") as running:
        try:
            while not is_late and not list(temporary.glob("*/*")):
                assert running.poll() is None
            if not is_late:
                running.send_signal(number)
            assert running.wait(100) == 128 + number
        finally:
            running.kill()
        assert running.stderr.read() in (b"", b"bcast: interrupted\n")
    assert files() == ["temporary"]
    assert files(temporary) == []


@posix
def test_a_signal_while_stdout_is_full(temporary):
    np.save("in.npy", np.arange(3.0))
    code = "import signal, sys; from bcast.__main__ import main; signal.signal(signal.SIGTERM, signal.SIG_DFL); main()"
    command = [sys.executable, "-c", code, "tile", "in.npy", "-", "--reps", "1000000", "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as running:
        assert running.stdout.read(1)  # it writes, and then the pipe is full
        running.send_signal(signal.SIGTERM)
        assert running.wait(100) == 128 + signal.SIGTERM
    assert files(temporary) == []


def awaiting_stdin(code=""):
    """Start a run that waits for stdin, with the signals as a terminal sets them, even under nohup."""
    code += "import signal, sys; from bcast.__main__ import main\n"
    code += f"for number in {int(signal.SIGTERM)}, {int(signal.SIGHUP)}: signal.signal(number, signal.SIG_DFL)\n"
    code += f"signal.signal({int(signal.SIGINT)}, signal.default_int_handler); sys.exit(main())"
    command = [sys.executable, "-c", code, "tile", "-", "out.npy", "--reps", "2"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)


@posix
def test_terminals_are_refused(temporary):
    np.save("in.npy", np.arange(3))
    here, there = os.openpty()
    for arguments, role in ((["-", "out.npy"], "IN"), (["in.npy", "-"], "OUT")):
        done = subprocess.run(
            [sys.executable, "-m", "bcast", "tile", *arguments, "--reps", "2"],
            stdin=there,
            stdout=there,
            stderr=subprocess.PIPE,
            timeout=300,
        )
        assert done.returncode == 2
        assert done.stderr.decode().startswith(f"bcast: error: `{role}` expected ")
    os.close(here)
    os.close(there)
    assert files(temporary) == []
