"""The command line: files in, files out, and one line on whatever is wrong."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import bcast
from bcast import _apply, _examples
from bcast.__main__ import main
from bcast._alignment import Alignment

OLD = b"what was there before"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(capsys):
    """Run the command line; give its status, and what it wrote to stdout and to stderr."""

    def run(*arguments):
        status = main([str(argument) for argument in arguments])
        return status, *capsys.readouterr()

    return run


def files(folder="."):
    return sorted(path.name for path in Path(folder).iterdir())


def succeed(run, *arguments):
    status, out, err = run("apply", *arguments)
    assert (status, err) == (0, "")
    return out


def python(*arguments, **options):
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.run([sys.executable, *arguments], text=True, encoding="utf-8", timeout=300, **options)


# Every mode: the data's shape, the arguments, the output's shape, and the data's at its rank.
MODES = {
    "numpy": ((3, 1, 5), "2,3,4,5", [], (2, 3, 4, 5), (1, 3, 1, 5)),
    "numpy_leading_1s": ((1, 1, 6, 7), "1,1,4,6,7", [], (1, 1, 4, 6, 7), (1, 1, 1, 6, 7)),
    "numpy_equal": ((4, 5, 3), "4,5,3", [], (4, 5, 3), (4, 5, 3)),
    "numpy_long_row": ((2, 300), "3,2,300", [], (3, 2, 300), (1, 2, 300)),
    "numpy_long_run": ((2, 1), "2,300", [], (2, 300), (2, 1)),
    "numpy_scalar": ((), "1,7,5", [], (1, 7, 5), (1, 1, 1)),
    "numpy_scalar_to_scalar": ((), "", [], (), ()),
    "numpy_many_axes": ((2, 1) * 6, "2," * 12, [], (2,) * 12, (2, 1) * 6),
    "explicit": ((4, 5), "2,4,5,3", ["--mode", "explicit", "--axes-mapping", "1,2"], (2, 4, 5, 3), (1, 4, 5, 1)),
    "explicit_stretched": ((3, 1), "3,2,4", ["--mode=explicit", "--axes-mapping=0,2"], (3, 2, 4), (3, 1, 1)),
    "explicit_scalar": ((), "3,2", ["--mode=explicit", "--axes-mapping", ""], (3, 2), (1, 1)),
    "explicit_added": ((4, 6), "2,4,5,6", ["--mode=explicit", "--broadcast-axes=2,0"], (2, 4, 5, 6), (1, 4, 1, 6)),
    "bidirectional": ((5, 2, 3, 1), "1,3,6", ["--mode", "bidirectional"], (5, 2, 3, 6), (5, 2, 3, 1)),
    "pdpd": ((1, 3, 1), "2,3,4,5", ["--mode", "pdpd", "--axis", "0"], (2, 3, 4, 5), (1, 3, 1, 1)),
    "pdpd_default_axis": ((4, 5), "2,3,4,5", ["--mode", "pdpd", "--axis", "-1"], (2, 3, 4, 5), (1, 1, 4, 5)),
    "none": ((6, 5), "6,5", ["--mode", "none"], (6, 5), (6, 5)),
}


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("piece", [1, 40, 150, _apply.PIECE])
@pytest.mark.parametrize(("shape", "target", "options", "result", "source"), MODES.values(), ids=MODES)
def test_modes_in_pieces(run, monkeypatch, shape, target, options, result, source, piece, order):
    monkeypatch.setattr(_apply, "PIECE", piece)
    data = np.asarray(np.arange(np.prod(shape, dtype=int)).reshape(shape), dtype=np.int32, order=order)
    np.save("in.npy", data)
    succeed(run, "in.npy", "out.npy", "--shape", target, *options)
    written = np.load("out.npy")
    np.testing.assert_array_equal(written, np.broadcast_to(data.reshape(source), result), strict=True)
    assert written.flags.c_contiguous
    assert files() == ["in.npy", "out.npy"]


ALIGNMENTS = {
    "scalar": Alignment((), ()),
    "1s": Alignment((1, 1), (1, 1)),
    "copied": Alignment((5, 7), (5, 7)),
    "repeated": Alignment((5, 7), (1, 1)),
    "alternating": Alignment((3, 4, 3, 4), (3, 1, 1, 4)),
    "leading_1s": Alignment((1, 1, 3, 1, 8), (1, 1, 3, 1, 1)),
    "long_inner": Alignment((2, 97), (2, 97)),
}


@pytest.mark.parametrize("itemsize", [1, 8, 33])
@pytest.mark.parametrize("piece", [1, 16, 50, 100, 10**6])
@pytest.mark.parametrize("alignment", ALIGNMENTS.values(), ids=ALIGNMENTS)
def test_pieces_cover_the_output_once(monkeypatch, alignment, piece, itemsize):
    monkeypatch.setattr(_apply, "PIECE", piece)
    times = np.zeros((*alignment.shape, itemsize), dtype=np.uint8)
    data = np.zeros(alignment.source)
    count = 0
    for out_index, data_index in _apply.pieces(alignment, itemsize):
        part = times[*out_index, ...]
        assert part.flags.c_contiguous
        assert part.nbytes <= max(piece, itemsize)
        assert np.broadcast_shapes(data[*data_index, ...].shape, part.shape[:-1]) == part.shape[:-1]
        part += 1
        count += 1
    assert (times == 1).all()
    # No more pieces than the size asks for, but for a short one at the end of each row of them.
    assert count <= max(1, 2 * times.nbytes // max(1, piece // itemsize * itemsize) + 1)


PACKED = np.dtype([("a", "i1"), ("b", "<f8"), ("λ", "U3")])
PADDED = np.dtype({"names": ["a", "b"], "formats": ["i1", "<f8"], "offsets": [2, 8], "itemsize": 18})
ARRAYS = {
    "bool": np.array([True, False, True]),
    "float16": np.array([1, np.nan, -0.0], dtype=np.float16),
    "big_endian": np.array([1, 2, 3], dtype=">i4"),
    "complex": np.array([1j, 2, np.inf]),
    "longdouble": np.array([1, 2, 3], dtype=np.longdouble),
    "datetime": np.array(["2020-01-01", "NaT", "1950-06-30"], dtype="M8[D]"),
    "timedelta": np.array([1, 2, 3], dtype="m8[ms]"),
    "unicode": np.array(["a", "βγ", ""]),
    "bytes": np.array([b"a", b"bcd", b""]),
    "void": np.array([b"abc", b"def", b"ghi"], dtype="V3"),
    "packed": np.array([(1, 2, "x"), (3, 4, "y"), (5, 6, "z")], dtype=PACKED),
    "padded": np.array([(1, 2), (3, 4), (5, 6)], dtype=PADDED),
    "item_beyond_a_piece": np.array(["a" * 50, "b", "c"]),
}


@pytest.mark.parametrize("data", ARRAYS.values(), ids=ARRAYS)
def test_dtypes(run, monkeypatch, data):
    monkeypatch.setattr(_apply, "PIECE", 100)
    with warnings.catch_warnings(action="ignore"):  # of format 3.0, for a field's name
        np.save("in.npy", data)
    out = succeed(run, "in.npy", "out.npy", "--shape", "7,3")
    assert out == f"out.npy: shape (7, 3), dtype {data.dtype}, 0.0 MB\n"
    np.testing.assert_array_equal(np.load("out.npy"), np.broadcast_to(data, (7, 3)), strict=True)


EMPTY = {
    "data": ((0, 3), "2,0,3", (2, 0, 3)),
    "data_stretched": ((1, 3), "0,3", (0, 3)),
    "scalar": ((), "4,0", (4, 0)),
}


@pytest.mark.parametrize("dtype", ["f8", PACKED, "V0"])
@pytest.mark.parametrize(("shape", "target", "result"), EMPTY.values(), ids=EMPTY)
def test_empty_outputs(run, shape, target, result, dtype):
    save_header("in.npy", shape, dtype)
    succeed(run, "in.npy", "out.npy", "--shape", target)
    written = np.load("out.npy")
    assert (written.shape, written.dtype) == (result, np.dtype(dtype))
    assert files() == ["in.npy", "out.npy"]


def test_items_of_no_bytes(run):
    save_header("in.npy", (3,), "V0")
    succeed(run, "in.npy", "out.npy", "--shape", "2,3")
    with Path("out.npy").open("rb") as file:
        np.lib.format.read_magic(file)
        assert np.lib.format.read_array_header_1_0(file) == ((2, 3), False, np.dtype("V0"))


def test_header_of_python_2(run):
    save_header("in.npy", (3,), "f8", version=1, edit=("3,", "3L,"))
    succeed(run, "in.npy", "out.npy", "--shape", "2,3")
    np.testing.assert_array_equal(np.load("out.npy"), np.zeros((2, 3)), strict=True)


def save_header(path, shape, dtype, version=3, edit=("", "")):
    """Write an array of zeros with a header that NumPy itself would not write."""
    dtype = np.dtype(dtype)
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    text = f"{header}\n".replace(*edit).encode()
    with Path(path).open("wb") as file:
        file.write(np.lib.format.magic(version, 0) + len(text).to_bytes(2 if version == 1 else 4, "little") + text)
        file.write(bytes(dtype.itemsize * int(np.prod(shape))))


SHAPES = {"": (), "()": (), "[]": (), "3": (3,), "3,": (3,), "(3,)": (3,), "[2, 3]": (2, 3), " 2 , 3 ": (2, 3)}


@pytest.mark.parametrize(("text", "shape"), SHAPES.items())
def test_spellings_of_shapes(run, text, shape):
    np.save("in.npy", np.float32(7))
    succeed(run, "in.npy", "out.npy", "--shape", text)
    np.testing.assert_array_equal(np.load("out.npy"), np.full(shape, 7, dtype=np.float32), strict=True)


# Bad input: the arguments after `apply`, and the line without its beginning.
NOT_NPY = "`IN` expected a whole .npy file, without objects, got "
NOT_REGULAR = "`IN` expected a regular .npy file, neither pipe, device nor directory, got "
REFUSED = {
    "no_file": ("none.npy out.npy --shape 3", "none.npy: No such file or directory"),
    "newline_in_a_name": ("no\nne.npy out.npy --shape 3", "no ne.npy: "),
    "no_name": (" out.npy --shape 3", "argument IN: expected the name of a file, got ''"),
    "no_out_name": ("in.npy  --shape 3", "argument OUT: expected the name of a file, got ''"),
    "folder_for_a_file": (". out.npy --shape 3", NOT_REGULAR + ".\n"),
    "device": (f"{os.devnull} out.npy --shape 3", NOT_REGULAR + os.devnull),
    "empty_file": ("empty.npy out.npy --shape 3", NOT_NPY + "empty.npy: EOF"),
    "no_npy": ("text.npy out.npy --shape 3", NOT_NPY + "text.npy: the magic string is not correct"),
    "npz": ("in.npz out.npy --shape 3", NOT_NPY + "in.npz: the magic string is not correct"),
    "broken_header": ("broken.npy out.npy --shape 3", NOT_NPY + "broken.npy: "),
    "boundless_header": ("boundless.npy out.npy --shape 3", NOT_NPY + "boundless.npy: "),
    "truncated": ("truncated.npy out.npy --shape 3", NOT_NPY + "truncated.npy: "),
    "objects": ("objects.npy out.npy --shape 3", NOT_NPY + "objects.npy: Array can't be memory-mapped: Python objects"),
    "out_is_a_folder": ("in.npy . --shape 3", ".: Is a directory"),
    "out_with_a_slash": ("in.npy out.npy/ --shape 3", "out.npy/: Is a directory"),
    "new_out_with_a_slash": ("in.npy new.npy/ --shape 3", "new.npy/: Is a directory"),
    "new_out_with_a_dot": ("in.npy new.npy/. --shape 3", "new.npy/.: Is a directory"),
    "out_in_no_folder": ("in.npy none/out.npy --shape 3", "none/out.npy: No such file or directory"),
    "out_in_a_file": ("in.npy in.npy/out.npy --shape 3", None),
    "misfit": ("in.npy out.npy --shape 2,4", "`shape` expected a shape that data of shape (3,) fits, got (2, 4)"),
    "negative": ("in.npy out.npy --shape=-1,3", "`shape` expected lengths of 0 or more, got (-1, 3)"),
    "negative_apart": ("in.npy out.npy --shape -1,3", "`shape` expected lengths of 0 or more, got (-1, 3)"),
    "negative_axes": (
        "in.npy out.npy --shape 3 --mode explicit --broadcast-axes -1,2",
        "`broadcast_axes` expected axes of",
    ),
    "negative_mapping": (
        "in.npy out.npy --shape 3 --mode explicit --axes-mapping -1,2",
        "`axes_mapping` expected 1 axes, one for each axis of data of shape (3,), got (-1, 2)",
    ),
    "no_value": ("in.npy out.npy --shape --mode numpy", "argument --shape: expected one argument"),
    "text": ("in.npy out.npy --shape 2x3", "argument --shape: expected integers between commas, got '2x3'"),
    "float": ("in.npy out.npy --shape 2.0,3", "argument --shape: expected integers between commas, got '2.0,3'"),
    "comma": ("in.npy out.npy --shape ,", "argument --shape: expected integers between commas, got ','"),
    "two_commas": ("in.npy out.npy --shape 2,,3", "argument --shape: expected integers between commas, got '2,,3'"),
    "half_a_bracket": ("in.npy out.npy --shape (2,3", "argument --shape: expected integers between commas, got '(2,3'"),
    "too_many_axes": (f"in.npy out.npy --shape {'1,' * 64}3", "`shape` expected at most 64 axes, got 65"),
    "too_many_elements": (f"in.npy out.npy --shape {2**62},3", f"`shape` expected an output of at most {2**63 - 1} el"),
    "too_many_bytes": (f"in.npy out.npy --shape {2**60},3", f"`shape` expected an output of at most {2**62 - 1} bytes"),
    "too_many_bytes_with_a_header": (
        f"one.npy out.npy --shape {2**60 - 1}",
        f"`shape` expected an output of at most {2**62 - 1} bytes, got one of {2**63 - 8}",
    ),
    "no_shape": ("in.npy out.npy", "the following arguments are required: --shape"),
    "no_files": ("--shape 3", "the following arguments are required: IN, OUT"),
    "mode": ("in.npy out.npy --shape 3 --mode edge", "argument --mode: invalid choice: 'edge'"),
    "abbreviation": ("in.npy out.npy --sha 3", None),
    "no_axes": (
        "in.npy out.npy --shape 3 --mode explicit",
        "`axes_mapping` expected 1 axes, one for each axis of data",
    ),
    "axes_out_of_range": (
        "in.npy out.npy --shape 3 --mode explicit --axes-mapping 1",
        "`axes_mapping` expected axes of",
    ),
    "axes_text": (
        "in.npy out.npy --shape 3 --mode explicit --axes-mapping a",
        "argument --axes-mapping: expected integ",
    ),
    "axes_in_numpy_mode": ("in.npy out.npy --shape 3 --broadcast-axes 0", "`broadcast_axes` expected None in mode 'nu"),
    "axis_in_numpy_mode": ("in.npy out.npy --shape 3 --axis 0", "`axis` expected -1 in mode 'numpy'"),
    "axis_text": ("in.npy out.npy --shape 3 --axis 1.5", "argument --axis: invalid int value: '1.5'"),
}


@pytest.fixture
def bad_files(folder):
    row = np.arange(3.0)
    np.save("in.npy", row)
    whole = (folder / "in.npy").read_bytes()
    np.save("one.npy", row[:1])
    np.savez("in.npz", row)
    np.save("objects.npy", np.array([None, 1, "a"]), allow_pickle=True)
    (folder / "empty.npy").write_bytes(b"")
    (folder / "text.npy").write_bytes(b"1.0, 2.0, 3.0\n")
    (folder / "truncated.npy").write_bytes(whole[:-1])
    (folder / "broken.npy").write_bytes(np.lib.format.magic(1, 0) + b"\x08\x00{(((((\\n")
    save_header("boundless.npy", (), "f8", edit=("()", "(4294967296, 4294967296, 3)"))
    (folder / "out.npy").write_bytes(OLD)


@pytest.mark.parametrize(("arguments", "message"), REFUSED.values(), ids=REFUSED)
@pytest.mark.usefixtures("bad_files")
def test_bad_input_is_refused_by_one_line(run, folder, arguments, message):
    check_refused(run, folder, ["apply", *arguments.split(" ")], message)


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


FAILURES = {
    "disk_full": ("_reserve", OSError(errno.ENOSPC, "No space left on device"), "out.npy: No space left on device"),
    "cannot_map": ("npy.open_memmap", OSError(errno.ENOMEM, "Cannot allocate memory"), None),
    "no_memory": ("replicate", MemoryError(), "out of memory"),
    "no_memory_in_words": ("replicate", MemoryError("Unable to\nallocate"), "Unable to allocate"),
    "bug_in_numpy": ("replicate", ValueError(), "ValueError()"),
    "write_error": ("np.memmap.flush", OSError(errno.EIO, "Input/output error"), "out.npy: Input/output error"),
    "no_right_to_rename": (
        "Path.replace",
        PermissionError(errno.EACCES, "Permission denied", "x", None, "y"),
        "out.npy: ",
    ),
}


@pytest.mark.parametrize(("name", "error", "message"), FAILURES.values(), ids=FAILURES)
@pytest.mark.usefixtures("bad_files")
def test_failures_leave_nothing_behind(run, folder, monkeypatch, name, error, message):
    monkeypatch.setattr(f"bcast._apply.{name}", fail_with(error))
    check_refused(run, folder, ["apply", "in.npy", "out.npy", "--shape", "4,3"], message)


@pytest.mark.usefixtures("bad_files")
def test_failure_halfway_leaves_nothing_behind(run, folder, monkeypatch):
    halfway(monkeypatch, fail_with(MemoryError()))
    check_refused(run, folder, ["apply", "in.npy", "out.npy", "--shape", "9,3"], "out of memory")


@pytest.mark.usefixtures("bad_files")
def test_interrupt_leaves_nothing_behind(run, folder, monkeypatch):
    halfway(monkeypatch, fail_with(KeyboardInterrupt()))
    before = files()
    assert run("apply", "in.npy", "out.npy", "--shape", "9,3") == (130, "", "bcast: interrupted\n")
    assert (folder / "out.npy").read_bytes() == OLD
    assert files() == before


def receive(number):
    """Have a signal handled as Python does; a real one finds too small a stack beside some libraries."""
    handler = signal.getsignal(number)
    if callable(handler):
        handler(number, None)


SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.usefixtures("bad_files")
def test_signal_to_end_leaves_nothing_behind(run, folder, monkeypatch, number):
    def end():
        receive(number)

    halfway(monkeypatch, end)
    before = files()
    with pytest.raises(SystemExit) as exited:
        run("apply", "in.npy", "out.npy", "--shape", "9,3")
    assert exited.value.code == 128 + number
    assert (folder / "out.npy").read_bytes() == OLD
    assert files() == before
    assert signal.getsignal(number) == signal.SIG_DFL


@pytest.mark.usefixtures("bad_files")
def test_second_signal_does_not_cut_the_removal_short(run, monkeypatch):
    unlink = Path.unlink

    def unlink_late(path, **options):
        receive(signal.SIGTERM)
        unlink(path, **options)

    monkeypatch.setattr(Path, "unlink", unlink_late)
    halfway(monkeypatch, lambda: receive(signal.SIGTERM))
    before = files()
    with pytest.raises(SystemExit):
        run("apply", "in.npy", "out.npy", "--shape", "9,3")
    assert files() == before


@pytest.mark.parametrize("number", SIGNALS)
def test_handled_signals_stay_so(run, monkeypatch, number):
    """As those that nohup has the process ignore."""
    np.save("in.npy", np.arange(3.0))
    before = signal.signal(number, signal.SIG_IGN)
    try:
        halfway(monkeypatch, lambda: receive(number))
        succeed(run, "in.npy", "out.npy", "--shape", "9,3")
        assert signal.getsignal(number) == signal.SIG_IGN
    finally:
        signal.signal(number, before)


def test_apply_in_another_thread(folder):
    np.save("in.npy", np.arange(3.0))
    thread = threading.Thread(target=_apply.apply, args=("in.npy", "out.npy", (9, 3)))
    thread.start()
    thread.join()
    assert np.load(folder / "out.npy").shape == (9, 3)


def halfway(monkeypatch, act):
    """Have `act` called at the fourth of nine pieces."""
    monkeypatch.setattr(_apply, "PIECE", 24)
    calls = []

    def replicate(*arguments):
        calls.append(arguments[1])
        if len(calls) == 4:
            act()
        return bcast._kernel.replicate(*arguments)

    monkeypatch.setattr(_apply, "replicate", replicate)


def test_runs_at_once_do_not_collide(run, monkeypatch):
    np.save("in.npy", np.arange(3.0))
    np.save("other.npy", np.arange(3.0) + 10)
    seen = []

    def run_another():
        seen.append(files())
        assert main(["apply", "other.npy", "out.npy", "--shape", "5,3"]) == 0
        seen.append(np.load("out.npy"))

    halfway(monkeypatch, run_another)
    status, _, err = run("apply", "in.npy", "out.npy", "--shape", "9,3")
    assert (status, err) == (0, "")
    assert len(seen[0]) == 3
    assert "out.npy" not in seen[0]
    np.testing.assert_array_equal(seen[1], np.broadcast_to(np.arange(3.0) + 10, (5, 3)))
    np.testing.assert_array_equal(np.load("out.npy"), np.broadcast_to(np.arange(3.0), (9, 3)))
    assert files() == ["in.npy", "other.npy", "out.npy"]


@pytest.mark.usefixtures("bad_files")
def test_disk_without_reservations(run, folder, monkeypatch):
    """Where the system cannot reserve room, the disk is asked how much it has."""
    monkeypatch.delattr(os, "posix_fallocate", raising=False)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=100))
    check_refused(
        run, folder, ["apply", "in.npy", "out.npy", "--shape", "4,3"], f"out.npy: {os.strerror(errno.ENOSPC)}"
    )
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10**6))
    succeed(run, "in.npy", "out.npy", "--shape", "4,3")
    assert np.load("out.npy").shape == (4, 3)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such limit")
@pytest.mark.usefixtures("bad_files")
def test_file_beyond_the_limit(folder):
    before = files()
    code = "import resource, sys; from bcast.__main__ import main; "
    code += "resource.setrlimit(resource.RLIMIT_FSIZE, (10**5, 10**5)); sys.exit(main(sys.argv[1:]))"
    done = python("-c", code, "apply", "in.npy", "out.npy", "--shape", "10000,3")
    message = "bcast: error: out.npy: File too large (240000 bytes)\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message)
    assert (folder / "out.npy").read_bytes() == OLD
    assert files() == before


@pytest.mark.usefixtures("bad_files")
def test_file_beyond_what_a_file_system_can_address(run, folder, monkeypatch):
    open_memmap = np.lib.format.open_memmap

    def stand_in(path, mode, **options):
        if mode == "w+":
            raise OSError(errno.EINVAL, "Invalid argument")
        return open_memmap(path, mode, **options)

    monkeypatch.setattr(np.lib.format, "open_memmap", stand_in)
    message = f"out.npy: {os.strerror(errno.EFBIG)} (96 bytes)\n"
    check_refused(run, folder, ["apply", "in.npy", "out.npy", "--shape", "4,3"], message)


@pytest.mark.parametrize(("target", "shape"), [("3", (3,)), ("4,3", (4, 3))], ids=["same_size", "larger"])
def test_in_and_out_may_be_the_same_file(run, monkeypatch, target, shape):
    monkeypatch.setattr(_apply, "PIECE", 16)
    data = np.arange(3.0)
    np.save("in.npy", data)
    succeed(run, "in.npy", "in.npy", "--shape", target)
    np.testing.assert_array_equal(np.load("in.npy"), np.broadcast_to(data, shape), strict=True)
    assert files() == ["in.npy"]


posix = pytest.mark.skipif(sys.platform == "win32", reason="has neither such permissions nor such links")
no_root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")


@posix
@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_permissions_are_those_of_any_new_file(run, folder, umask):
    np.save("in.npy", 1)
    before = os.umask(umask)
    try:
        (folder / "plain").write_bytes(b"")
        succeed(run, "in.npy", "out.npy", "--shape", "3")
    finally:
        os.umask(before)
    assert (folder / "out.npy").stat().st_mode == (folder / "plain").stat().st_mode


@posix
def test_permissions_of_an_existing_file_stay(run, folder):
    np.save("in.npy", 1)
    (folder / "out.npy").write_bytes(OLD)
    (folder / "out.npy").chmod(0o640)
    succeed(run, "in.npy", "out.npy", "--shape", "3")
    assert (folder / "out.npy").stat().st_mode & 0o777 == 0o640


@no_root
@pytest.mark.parametrize("path", ["out.npy", "."])
@pytest.mark.usefixtures("bad_files")
def test_no_right_to_write(run, folder, path):
    mode = (folder / path).stat().st_mode
    (folder / path).chmod(0o555)
    try:
        check_refused(run, folder, ["apply", "in.npy", "out.npy", "--shape", "3"], "out.npy: Permission denied")
    finally:
        (folder / path).chmod(mode)


@posix
@pytest.mark.parametrize("there", [True, False])
def test_links_are_followed(run, folder, there):
    np.save("in.npy", 1)
    (folder / "there").mkdir()
    if there:
        (folder / "there" / "real.npy").write_bytes(OLD)
    (folder / "out.npy").symlink_to("there/real.npy")
    succeed(run, "in.npy", "out.npy", "--shape", "3")
    assert (folder / "out.npy").is_symlink()
    np.testing.assert_array_equal(np.load("there/real.npy"), [1, 1, 1])
    assert files("there") == ["real.npy"]


@posix
def test_only_regular_files_are_replaced(run):
    np.save("in.npy", 1)
    os.mkfifo("out.npy")
    status, out, err = run("apply", "in.npy", "out.npy", "--shape", "3")
    assert (status, out, err) == (2, "", "bcast: error: out.npy: not a regular file\n")
    assert files() == ["in.npy", "out.npy"]


@posix
@pytest.mark.usefixtures("bad_files")
def test_pipes_are_not_read(run, folder):
    os.mkfifo("pipe.npy")
    check_refused(run, folder, ["apply", "pipe.npy", "out.npy", "--shape", "3"], NOT_REGULAR + "pipe.npy")


# The progress bar.


@pytest.fixture
def large(monkeypatch):
    """Arguments for an output in twelve pieces, just large enough for a progress bar."""
    np.save("in.npy", np.arange(1000, dtype=np.uint8))
    monkeypatch.setattr(_apply, "PIECE", 1000)
    monkeypatch.setattr(_apply, "PROGRESS", 12_000)
    return ["apply", "in.npy", "out.npy", "--shape", "12,1000"]


def test_progress_bar(run, large):
    pytest.importorskip("tqdm")
    status, out, err = run(*large)
    assert (status, out) == (0, "out.npy: shape (12, 1000), dtype uint8, 0.0 MB\n")
    assert "100%" in err
    assert "12.0k/12.0k" in err
    assert "B/s]" in err


def test_no_progress_bar_below_its_threshold(run, large, monkeypatch):
    monkeypatch.setattr(_apply, "PROGRESS", 12_001)
    status, _, err = run(*large)
    assert (status, err) == (0, "")


def test_no_progress_bar_without_tqdm(run, large, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    status, _, err = run(*large)
    assert (status, err) == (0, "")
    assert np.load("out.npy").shape == (12, 1000)


def test_no_progress_bar_without_stderr(run, large, monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    status, _, _ = run(*large)
    assert status == 0


# The other commands.


@pytest.fixture
def tables(monkeypatch):
    """Put a stand-in for the benchmark, which takes seconds; give the calls it gets."""
    calls = []
    stand_in = SimpleNamespace(table=lambda **options: calls.append(options) or "a table")
    monkeypatch.setitem(sys.modules, "bcast._bench", stand_in)
    return calls


def test_check(run, tables):
    status, out, err = run()
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        "OpenVINO Broadcast-1: 7 of 7 examples pass",
        "OpenVINO broadcast rules: 25 of 25 examples pass",
        "ONNX broadcasting: 9 of 9 examples pass",
        "nGraph Broadcast: 6 of 6 examples pass",
        "",
        "a table",
    ]
    assert tables == [{"seconds": 5.0, "short": True}]


@pytest.mark.usefixtures("tables")
def test_check_that_fails(run, monkeypatch):
    monkeypatch.setattr(_examples, "broadcast", lambda data, *_, **__: bcast.broadcast(data, (2, 3, 4, 5)))
    status, out, _ = run()
    assert status == 1
    lines = out.splitlines()
    assert lines[3] == "nGraph Broadcast: 3 of 6 examples pass"
    assert lines[-2:] == ["", "a table"]
    failures = [line for line in lines if line.startswith("FAILED ")]
    assert "FAILED nGraph Broadcast, AxisSet{0}: expected shape (2, 3), got a refusal" in failures
    passed = sum(int(line.split(": ")[1].split(" of ")[0]) for line in lines[:4])
    assert passed + len(failures) == 47


def test_bench(run, tables):
    assert run("bench") == (0, "a table\n", "")
    assert run("bench", "--seconds", "2.5") == (0, "a table\n", "")
    assert tables == [{"seconds": 20.0}, {"seconds": 2.5}]


@pytest.mark.parametrize("seconds", ["0", "0.99", "-1", "-1e-3", "nan", "inf", "soon"])
def test_bench_refuses_seconds(run, tables, seconds):
    status, out, err = run("bench", "--seconds", seconds)
    assert (status, out) == (2, "")
    message = f"argument --seconds: expected a finite number of seconds, at least 1, got '{seconds}'"
    assert err == f"bcast: error: {message}\n"
    assert tables == []


def test_unknown_command(run):
    status, out, err = run("broadcast")
    assert (status, out) == (2, "")
    assert err.startswith("bcast: error: argument COMMAND: invalid choice: 'broadcast'")


def test_interrupted_bench(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "bcast._bench", SimpleNamespace(table=fail_with(KeyboardInterrupt())))
    assert run("bench") == (130, "", "bcast: interrupted\n")


HELP = {
    "version": (["--version"], [f"bcast {bcast.__version__}\n"]),
    "help": (["--help"], ["usage: python -m bcast", "apply", "bench", "Without a command"]),
    "apply": (["apply", "--help"], ["--shape", "--mode", "--axes-mapping", "--broadcast-axes", "--axis", "example:"]),
    "bench": (["bench", "--help"], ["--seconds", "20"]),
}


@pytest.mark.parametrize(("arguments", "texts"), HELP.values(), ids=HELP)
def test_help(capsys, arguments, texts):
    with pytest.raises(SystemExit) as exited:
        main(arguments)
    assert exited.value.code == 0
    out, err = capsys.readouterr()
    assert err == ""
    for text in texts:
        assert text in out


# As a process.


def test_process(folder):
    name = "β.npy"
    np.save("in.npy", np.arange(16.0))
    options = ["--shape", "1,16,50,50", "--mode", "explicit", "--axes-mapping", "1"]
    done = python("-m", "bcast", "apply", "in.npy", name, *options, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "\\u03b2.npy: shape (1, 16, 50, 50), dtype float64, 0.3 MB\n"
    expected = np.broadcast_to(np.arange(16.0).reshape(1, 16, 1, 1), (1, 16, 50, 50))
    np.testing.assert_array_equal(np.load(folder / name), expected, strict=True)
    done = python("-m", "bcast", "apply", "in.npy", name, "--shape", "3")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("bcast: error: `shape` expected")
    assert done.stderr.count("\n") == 1


COMMANDS = {
    "apply": ["apply", "in.npy", "out.npy", "--shape", "2,3"],
    "check": [],
    "help": ["--help"],
    "version": ["--version"],
}


@posix
@pytest.mark.parametrize("options", [[], ["-u"]], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
def test_closed_pipe(arguments, options):
    np.save("in.npy", np.arange(3.0))
    end, pipe = os.pipe()
    os.close(end)
    try:
        assert status_and_stderr(*options, "-m", "bcast", *arguments, stdout=pipe) == (141, "")
    finally:
        os.close(pipe)


full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")


@full
@pytest.mark.parametrize("options", [[], ["-u"]], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
def test_full_stdout(arguments, options):
    np.save("in.npy", np.arange(3.0))
    message = f"bcast: error: standard output: {os.strerror(errno.ENOSPC)}\n"
    with Path("/dev/full").open("w") as device:
        assert status_and_stderr(*options, "-m", "bcast", *arguments, stdout=device) == (2, message)


@full
def test_full_stderr():
    with Path("/dev/full").open("w") as device:
        assert python("-m", "bcast", "apply", stderr=device).returncode == 2


def status_and_stderr(*arguments, **options):
    done = python(*arguments, **options)
    return done.returncode, done.stderr


def test_imports_are_lazy():
    code = "import sys, bcast.__main__ as m; m.main(['bench', '--seconds', 'x']); "
    code += "print(sorted(n for n in sys.modules if n in ('tqdm', 'bcast._apply', 'bcast._bench', 'bcast._examples')))"
    done = python("-c", code)
    assert done.stdout == "[]\n"


def test_bench_for_real():
    done = python("-m", "bcast", "bench", "--seconds", "1")
    assert done.returncode == 0, done.stderr
    assert f"bcast {bcast.__version__}" in done.stdout
    assert np.__version__ in done.stdout
