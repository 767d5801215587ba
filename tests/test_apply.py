"""`apply` from file to file: every mode, any dtype, piece by piece; a run that fails leaves no files."""

import errno
import itertools
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from _commands import NOT_NPY, OLD, check_refused, fail_with, files, halfway, python, save_header, succeed

from bcast._cli import apply as cli_apply

pytestmark = pytest.mark.usefixtures("folder")


# Every mode: the data's shape, the arguments, the output's shape, and the data's at its rank.
MODES = {
    "numpy": ((3, 1, 5), "2,3,4,5", [], (2, 3, 4, 5), (1, 3, 1, 5)),
    "numpy_scalar": ((), "1,7,5", [], (1, 7, 5), (1, 1, 1)),
    "numpy_scalar_to_scalar": ((), "", [], (), ()),
    "explicit": ((4, 5), "2,4,5,3", ["--mode", "explicit", "--axes-mapping", "1,2"], (2, 4, 5, 3), (1, 4, 5, 1)),
    "explicit_added": ((4, 6), "2,4,5,6", ["--mode=explicit", "--broadcast-axes=2,0"], (2, 4, 5, 6), (1, 4, 1, 6)),
    "bidirectional": ((5, 2, 3, 1), "1,3,6", ["--mode", "bidirectional"], (5, 2, 3, 6), (5, 2, 3, 1)),
    "pdpd": ((1, 3, 1), "2,3,4,5", ["--mode", "pdpd", "--axis", "0"], (2, 3, 4, 5), (1, 3, 1, 1)),
    "none": ((6, 5), "6,5", ["--mode", "none"], (6, 5), (6, 5)),
}


@pytest.mark.parametrize(("shape", "target", "options", "result", "source"), MODES.values(), ids=MODES)
def test_modes_in_pieces(run, monkeypatch, shape, target, options, result, source):
    for order, piece in ("F", 1), ("C", 40), ("F", 150), ("C", cli_apply.BLOCK_BYTES):
        monkeypatch.setattr(cli_apply, "BLOCK_BYTES", piece)
        data = np.asarray(np.arange(np.prod(shape, dtype=int)).reshape(shape), dtype=np.int32, order=order)
        np.save("in.npy", data)
        succeed(run, "in.npy", "out.npy", "--shape", target, *options)
        written = np.load("out.npy")
        np.testing.assert_array_equal(written, np.broadcast_to(data.reshape(source), result), strict=True)
        assert written.flags.c_contiguous
        assert files() == ["in.npy", "out.npy"]


PACKED = np.dtype([("a", "i1"), ("b", "<f8"), ("λ", "U3")])
PADDED = np.dtype({"names": ["a", "b"], "formats": ["i1", "<f8"], "offsets": [2, 8], "itemsize": 18})
ARRAYS = {
    "big_endian": np.array([1, 2, 3], dtype=">i4"),
    "longdouble": np.array([1, 2, 3], dtype=np.longdouble),
    "packed": np.array([(1, 2, "x"), (3, 4, "y"), (5, 6, "z")], dtype=PACKED),
    "padded": np.array([(1, 2), (3, 4), (5, 6)], dtype=PADDED),
    "item_beyond_a_piece": np.array(["a" * 50, "b", "c"]),
}


@pytest.mark.filterwarnings("error::UserWarning")
@pytest.mark.parametrize("data", ARRAYS.values(), ids=ARRAYS)
def test_files_of_every_dtype_are_those_of_numpy(run, monkeypatch, data):
    monkeypatch.setattr(cli_apply, "BLOCK_BYTES", 100)
    with warnings.catch_warnings(action="ignore"):  # of format 3.0, for a field's name
        np.save("in.npy", data)
    out = succeed(run, "in.npy", "out.npy", "--shape", "7,3")
    assert out == f"out.npy: shape (7, 3), dtype {data.dtype}\n"
    np.testing.assert_array_equal(np.load("out.npy"), np.broadcast_to(data, (7, 3)), strict=True)


@pytest.mark.filterwarnings("error::UserWarning")
@pytest.mark.parametrize("dtype", ["f8", "V0"])
def test_empty_outputs_and_items(run, dtype):
    for shape, target, result in ((0, 3), "2,0,3", (2, 0, 3)), ((1, 3), "0,3", (0, 3)), ((), "4,0", (4, 0)):
        save_header("in.npy", shape, dtype)
        succeed(run, "in.npy", "out.npy", "--shape", target)
        written = np.load("out.npy")
        assert (written.shape, written.dtype) == (result, np.dtype(dtype))
        assert files() == ["in.npy", "out.npy"]
    save_header("in.npy", (3,), "V0")
    succeed(run, "in.npy", "out.npy", "--shape", "2,3")
    with Path("out.npy").open("rb") as file:
        np.lib.format.read_magic(file)
        assert np.lib.format.read_array_header_1_0(file) == ((2, 3), False, np.dtype("V0"))


def test_header_is_numpys_own(run):
    np.save("in.npy", np.arange(3, dtype=">i4"))
    succeed(run, "in.npy", "out.npy", "--shape", "2,3")
    np.save("expected.npy", np.array([np.arange(3)] * 2, dtype=">i4"))
    assert Path("out.npy").read_bytes() == Path("expected.npy").read_bytes()


# Damaged headers: an item's type, and what the shape is written as. NumPy itself refuses most others.
DAMAGED = [("f8", "(-3,)"), ("V0", "(-1,)"), ("V0", "(2, -1, 3)"), ("u1", f"({-(2**63)},)")]
DAMAGED += [("f8", f"({length},)") for length in (2**61 + 1, 2**64 + 3)]  # whose bytes, or which, wrap to little


def test_damaged_shapes(folder):
    """In a process of its own: NumPy divides by zero where a length of -1 meets items of no bytes."""
    names = [f"{i}.npy" for i in range(2 * len(DAMAGED))]
    for name, ((dtype, text), version) in zip(names, itertools.product(DAMAGED, (1, 3)), strict=True):
        save_header(name, (3,), dtype, version, edit=("(3,)", text))
    (folder / "out.npy").write_bytes(OLD)
    before = files()
    code = "import sys; from bcast.__main__ import main; "
    code += "print({main(['apply', name, 'out.npy', '--shape', '2,3']) for name in sys.argv[1:]})"
    done = python("-c", code, *names)
    assert (done.returncode, done.stdout) == (0, "{2}\n")
    for name, line in zip(names, done.stderr.splitlines(), strict=True):
        assert line.startswith(f"bcast: error: {NOT_NPY}{name}: ")
    assert (folder / "out.npy").read_bytes() == OLD
    assert files() == before


# Failures.


NO_MEMORY = OSError(errno.ENOMEM, "Cannot allocate memory")
FULL, DENIED = OSError(errno.ENOSPC, "No space left"), PermissionError(errno.EACCES, "Denied", "x", None, "y")
FAILURES = {
    "disk_full": ("npy_files.os.posix_fallocate", FULL, "out.npy: No space"),
    "no_room_for_blocks": ("npy_files.NpyOutput.block", NO_MEMORY, "out.npy: Cannot allocate"),
    "disk_does_not_take_it": ("npy_files.np.memmap.flush", OSError(errno.EIO, "Input/output error"), "out.npy: Input"),
    "no_right_to_rename": ("atomic.Path.replace", DENIED, "out.npy: Denied"),
}


@pytest.mark.parametrize(("name", "error", "message"), FAILURES.values(), ids=FAILURES)
@pytest.mark.usefixtures("bad_files")
def test_failures_leave_nothing_behind(run, folder, monkeypatch, name, error, message):
    monkeypatch.setattr(f"bcast._cli.{name}", fail_with(error))
    check_refused(run, folder, ["apply", "in.npy", "out.npy", "--shape", "1000,3"], message)


@pytest.mark.usefixtures("bad_files")
def test_failure_halfway_leaves_nothing_behind(run, folder, monkeypatch):
    halfway(monkeypatch, fail_with(MemoryError()))
    check_refused(run, folder, ["apply", "in.npy", "out.npy", "--shape", "9,3"], "out of memory")


@pytest.mark.usefixtures("bad_files")
def test_disk_without_reservations(run, folder, monkeypatch):
    """If the system cannot reserve disk space, the free space is checked."""
    monkeypatch.delattr(os, "posix_fallocate", raising=False)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=50))
    arguments = ["apply", "in.npy", "out.npy", "--shape", "4,3"]
    check_refused(run, folder, arguments, f"out.npy: {os.strerror(errno.ENOSPC)}")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10**6))
    succeed(run, "in.npy", "out.npy", "--shape", "4,3")
    assert np.load("out.npy").shape == (4, 3)


# A disk of a megabyte in a namespace of its own, which ends with the command.
SMALL_DISK = """mount -t tmpfs -o size=1m none small && printf old >small/out.npy || exit 99
"$0" -m bcast apply in.npy small/out.npy --shape "$1"; echo $?; ls -A small; head -c 3 small/out.npy"""


@pytest.mark.parametrize(("target", "status"), [("100,100", 0), ("1000,200", 2)], ids=["fits", "does_not"])
def test_full_disk(folder, target, status):
    np.save("in.npy", 1.0)
    (folder / "small").mkdir()
    command = ["unshare", "--map-root-user", "--mount", "sh", "-c", SMALL_DISK, sys.executable, target]
    try:
        done = subprocess.run(command, capture_output=True, timeout=300)
    except FileNotFoundError:
        pytest.skip("no namespaces here")
    if done.returncode or not done.stdout:
        pytest.skip(f"no disks of our own here: {done.stderr.decode()}")
    if status == 0:
        assert done.stdout.endswith(b"\n0\nout.npy\n\x93NU")
    else:
        assert done.stdout == b"2\nout.npy\nold"
        assert done.stderr.decode() == f"bcast: error: small/out.npy: {os.strerror(errno.ENOSPC)}\n"


@pytest.mark.usefixtures("bad_files")
def test_a_file_is_not_replaced_against_the_users_will(run, folder, monkeypatch):
    message = f"out.npy: {os.strerror(errno.EEXIST)}"
    check_refused(run, folder, ["apply", "in.npy", "out.npy", "--shape", "9,3", "--no-clobber"], message)
    (folder / "out.npy").unlink()
    succeed(run, "in.npy", "out.npy", "--shape", "9,3", "--no-clobber")
    (folder / "out.npy").unlink()
    halfway(monkeypatch, lambda: (folder / "out.npy").write_bytes(OLD))
    status, _, err = run("apply", "in.npy", "out.npy", "--shape", "9,3", "--no-clobber")
    assert (status, err) == (2, f"bcast: error: {message}\n")
    assert (folder / "out.npy").read_bytes() == OLD


# Another dtype.


@pytest.mark.parametrize(("own", "dtype"), [("u1", "f4"), (">i4", "<f8"), ("i4", "U")])
def test_another_dtype(run, monkeypatch, own, dtype):
    data = np.arange(6).reshape(3, 1, 2).astype(own)
    np.save("in.npy", data)
    expected = np.broadcast_to(data, (3, 4, 2)).astype(dtype)
    for piece in (1, 40, cli_apply.BLOCK_BYTES):
        monkeypatch.setattr(cli_apply, "BLOCK_BYTES", piece)
        succeed(run, "in.npy", "out.npy", "--shape", "3,4,2", "--dtype", dtype)
        np.testing.assert_array_equal(np.load("out.npy"), expected, strict=True)


def test_a_warning_is_printed_once(run, monkeypatch):
    monkeypatch.setattr(cli_apply, "BLOCK_BYTES", 8)
    np.save("in.npy", np.full(100, 1e300))
    status, _, err = run("apply", "in.npy", "out.npy", "--shape", "3,100", "--dtype", "f4")
    assert (status, err) == (0, "bcast: warning: overflow encountered in cast\n")
    assert np.isinf(np.load("out.npy")).all()


def test_a_unit_that_the_data_would_decide_about_is_refused(run):
    np.save("in.npy", np.array(["2020-01-01T10"] * 2))
    options = ["--shape", "2,2", "--casting", "unsafe", "--dtype"]
    status, _, err = run("apply", "in.npy", "out.npy", *options, "M8")
    assert (status, err.startswith("bcast: error: `dtype` expected ")) == (2, True)
    succeed(run, "in.npy", "out.npy", *options, "M8[h]")
    np.testing.assert_array_equal(np.load("out.npy"), np.full((2, 2), "2020-01-01T10", "M8[h]"), strict=True)
