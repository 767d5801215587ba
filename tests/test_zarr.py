"""`apply` reads and writes Zarr's folders: each chunk is written once, and nothing is left of a run that fails."""

import errno
import shutil
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from _commands import OLD, check_refused, fail_with, files, halfway, posix, program, python, succeed
from test_apply import ARRAYS, MODES

from bcast._cli import apply as cli_apply

zarr = pytest.importorskip("zarr", minversion="3")

pytestmark = [
    pytest.mark.usefixtures("folder"),
    pytest.mark.filterwarnings("ignore:.*does not have a Zarr V3 specification"),
]


def save(name, data, **options):
    """Save an array, in Zarr's format if the name says so."""
    if name.endswith(".npy"):
        np.save(name, data)
    else:
        zarr.create_array(name, shape=data.shape, dtype=data.dtype, **options)[...] = data


def load(name):
    return np.load(name) if name.endswith(".npy") else np.asarray(zarr.open_array(name, mode="r")[...])


CASES = {name: MODES[name] for name in ("numpy", "numpy_scalar", "explicit", "bidirectional", "pdpd", "none")}
CASES["empty"] = ((1, 3), "0,3", [], (0, 3), (1, 3))
RECORD = np.dtype([("a", "f4"), ("b", "i2")])
WAYS = [("in.zarr", "out.npy"), ("in.npy", "out.zarr"), ("in.zarr", "out.zarr")]


@pytest.mark.parametrize(("source", "out"), WAYS)
@pytest.mark.parametrize(("shape", "target", "options", "result", "place"), CASES.values(), ids=CASES)
def test_modes_in_blocks(run, monkeypatch, shape, target, options, result, place, source, out):
    data = np.arange(np.prod(shape, dtype=int), dtype=np.int32).reshape(shape)
    save(source, data, chunks=tuple(-(-n // 2) for n in shape))
    if out == "out.zarr" and all(result) and result:
        options = [*options, "--chunks", ",".join(str(-(-n // 2)) for n in result)]
    for piece in (1, 100, cli_apply.BLOCK_BYTES):
        monkeypatch.setattr(cli_apply, "BLOCK_BYTES", piece)
        shutil.rmtree("out.zarr", ignore_errors=True)
        succeed(run, source, out, "--shape", target, *options)
        np.testing.assert_array_equal(load(out), np.broadcast_to(data.reshape(place), result), strict=True)
        assert files() == [source, out]


ARRAYS = {name: ARRAYS[name] for name in ("bool", "big_endian", "complex", "datetime", "unicode")}


@pytest.mark.parametrize("data", ARRAYS.values(), ids=ARRAYS)
def test_dtypes(run, data):
    np.save("in.npy", data)
    assert run("apply", "in.npy", "out.zarr", "--shape", "7,3", "--chunks", "2,1")[0] == 0
    assert run("apply", "out.zarr", "back.npy", "--shape", "7,3")[0] == 0
    expected = np.broadcast_to(data, (7, 3)).astype(data.dtype.newbyteorder("="))
    for name in ("out.zarr", "back.npy"):
        assert load(name).dtype == expected.dtype
        assert load(name).tobytes() == expected.tobytes()


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("order", "CF")
def test_both_formats_and_orders_are_read(run, version, order):
    data = np.arange(60.0).reshape(6, 10)
    save("in.zarr", data, chunks=(4, 3), zarr_format=version, order=order if version == 2 else None)
    succeed(run, "in.zarr", "out.npy", "--shape", "3,6,10")
    np.testing.assert_array_equal(load("out.npy"), np.broadcast_to(data, (3, 6, 10)), strict=True)


# Chunks.


@pytest.fixture
def written(monkeypatch):
    count = Counter()
    store = zarr.storage.LocalStore
    put = store.set

    async def noted(self, key, value):
        count[key] += 1
        await put(self, key, value)

    monkeypatch.setattr(store, "set", noted)
    return count


@pytest.mark.parametrize("block", [1, 300, cli_apply.BLOCK_BYTES])
@pytest.mark.parametrize(
    ("option", "chunks", "count"),
    [("2,7,10", (2, 7, 10), 2 * 2 * 3), ("-1,1,-1", (4, 1, 30), 8), ("100,100,100", (100, 100, 100), 1)],
)
def test_each_chunk_is_written_once(run, monkeypatch, written, option, chunks, count, block):
    monkeypatch.setattr(cli_apply, "BLOCK_BYTES", block)
    data = np.arange(1, 241.0).reshape(8, 30)
    np.save("in.npy", data)
    succeed(run, "in.npy", "out.zarr", "--shape", "4,8,30", f"--chunks={option}")
    array = zarr.open_array("out.zarr")
    assert array.chunks == chunks
    np.testing.assert_array_equal(array[...], np.broadcast_to(data, (4, 8, 30)))
    del written["zarr.json"]
    assert len(written) == count
    assert set(written.values()) == {1}


def test_shards_are_read(run):
    data = np.arange(960.0).reshape(32, 30)
    save("in.zarr", data, chunks=(4, 5), shards=(8, 15))
    succeed(run, "in.zarr", "out.npy", "--shape", "2,32,30")
    np.testing.assert_array_equal(load("out.npy"), np.broadcast_to(data, (2, 32, 30)), strict=True)


@pytest.mark.parametrize("dtype", ["u1", "f4", "?", "M8[s]", "S3"])
def test_chunks_of_nothing_but_fill_values_are_not_written(run, written, dtype):
    data = np.zeros(40, dtype="u1")
    data[25] = 1
    fill = zarr.create_array(zarr.storage.MemoryStore(), shape=(1,), dtype=dtype).fill_value
    np.save("in.npy", np.where(data, np.ones(40, "u1").astype(dtype), np.full(40, fill, dtype)))
    assert run("apply", "in.npy", "out.zarr", "--shape", "2,40", "--chunks", "1,10")[0] == 0
    assert set(written) == {"zarr.json", "c/0/2", "c/1/2"}
    np.testing.assert_array_equal(load("out.zarr"), np.broadcast_to(np.load("in.npy"), (2, 40)), strict=True)


@pytest.mark.parametrize("zero", [np.float32(-0.0), np.complex64(complex(0.0, -0.0)), np.array((-0.0, 0), RECORD)])
def test_zeros_with_a_sign_are_written(run, zero):
    """They equal the fill value, but are other bytes."""
    data = np.zeros(40, zero.dtype)
    data[13] = zero
    np.save("in.npy", data)
    assert run("apply", "in.npy", "out.zarr", "--shape", "2,40", "--chunks", "1,10")[0] == 0
    assert load("out.zarr").tobytes() == data.tobytes() * 2


# What is refused.


@pytest.fixture
def bad(folder):
    np.save("in.npy", np.arange(3.0))
    np.save("long.npy", np.arange(3, dtype="g"))
    (folder / "out.npy").write_bytes(OLD)
    save("a.zarr", np.arange(3.0))
    zarr.create_group("group.zarr")
    Path("nothing.zarr").mkdir()
    Path("file.zarr").touch()
    save("damaged.zarr", np.arange(3.0))
    Path("damaged.zarr/c/0").write_bytes(b"nonsense")
    save("text.zarr", np.array(["a", "b", "c"], dtype=np.dtypes.StringDType()))


REFUSED = {
    "exists": ("in.npy", "a.zarr", [], "a.zarr: File exists"),
    "a_file": ("in.npy", "file.zarr", [], "file.zarr: File exists"),
    "no_folder": ("in.npy", "no/out.zarr", [], "no/out.zarr: No such file"),
    **{
        name: (f"{name}.zarr", "out.zarr", [], f"`IN` expected a Zarr array, got {name}.zarr: ")
        for name in ("missing", "group", "nothing", "file", "damaged")
    },
    "text": ("text.zarr", "out.npy", [], "`dtype` expected "),
    "longdouble": ("long.npy", "out.zarr", [], "`dtype` expected "),
    "few_chunks": ("in.npy", "out.zarr", ["--chunks", "2"], "`chunks` expected "),
    "no_length": ("in.npy", "out.zarr", ["--chunks", "0,2"], "`chunks` expected "),
    "memory": ("in.npy", "out.zarr", ["--max-memory", "10MB"], "`max_memory` expected "),
}


@posix
@pytest.mark.usefixtures("bad")
@pytest.mark.parametrize(("source", "out", "options", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(run, folder, source, out, options, message):
    check_refused(run, folder, ["apply", source, out, "--shape", "2,3", *options], message)


@pytest.mark.usefixtures("bad")
@pytest.mark.parametrize(("source", "out"), [("in.npy", "out.zarr"), ("a.zarr", "out.npy")])
def test_without_zarr(run, folder, monkeypatch, source, out):
    monkeypatch.setitem(sys.modules, "zarr", None)
    message = 'Zarr arrays need the package zarr: pip install "bcast[zarr]"'
    check_refused(run, folder, ["apply", source, out, "--shape", "2,3"], message)
    monkeypatch.setitem(sys.modules, "zarr", type("Old", (), {"__version__": "2.18.7"}))
    message = "Zarr arrays need the package zarr from 3.0 on, got 2.18.7"
    check_refused(run, folder, ["apply", source, out, "--shape", "2,3"], message)


# Failures, signals and kills.

FAILURES = {
    "no_memory": ("apply.convert_onto", MemoryError(), "out of memory"),
    "disk": ("zarr_files.ZarrOutput.write", OSError(errno.EIO, "Input/output error"), "out.zarr: Input/output error"),
    "rename": ("atomic.Path.replace", PermissionError(errno.EACCES, "Denied", "x", None, "y"), "out.zarr: Denied"),
    "mkdir": ("atomic.mkdtemp", PermissionError(errno.EACCES, "Denied", "x"), "out.zarr: Denied"),
}


@pytest.mark.usefixtures("bad")
@pytest.mark.parametrize(("name", "error", "message"), FAILURES.values(), ids=FAILURES)
def test_failures_leave_nothing_behind(run, folder, monkeypatch, name, error, message):
    monkeypatch.setattr(f"bcast._cli.{name}", fail_with(error))
    check_refused(run, folder, ["apply", "in.npy", "out.zarr", "--shape", "1000,3"], message)


def test_a_damaged_chunk_is_told_in_one_line():
    """In a process of its own, whose end no read of another chunk may disturb."""
    save("in.zarr", np.arange(1000.0), chunks=(10,), compressors=None)
    Path("in.zarr/c/3").write_bytes(b"x" * 16)
    for _ in range(3):
        done = python("-m", "bcast", "apply", "in.zarr", "out.npy", "--shape", "1000")
        assert done.returncode == 2
        assert done.stderr.startswith("bcast: error: `IN` expected a Zarr array, got in.zarr: ")
        assert done.stderr.count("\n") == 1
    assert files() == ["in.zarr"]


def test_chunks_larger_than_a_block_are_decoded_once(run, monkeypatch):
    """If there is memory for that."""
    monkeypatch.setattr(cli_apply, "BLOCK_BYTES", 1000)
    data = np.arange(6000.0).reshape(60, 100)
    save("in.zarr", data, chunks=(60, 20))
    get, count = zarr.storage.LocalStore.get, []

    def counted(self, key, *arguments, **options):
        count.append(key)
        return get(self, key, *arguments, **options)

    monkeypatch.setattr(zarr.storage.LocalStore, "get", counted)
    succeed(run, "in.zarr", "out.npy", "--shape", "60,100")
    np.testing.assert_array_equal(load("out.npy"), data)
    assert len([key for key in count if key.startswith("c/")]) == 5


def test_a_name_that_is_taken_meanwhile(run, monkeypatch):
    np.save("in.npy", np.arange(3.0))
    halfway(monkeypatch, lambda: Path("out.zarr").mkdir())
    status, _, err = run("apply", "in.npy", "out.zarr", "--shape", "9,3", "--chunks", "1,3")
    assert (status, err.startswith("bcast: error: out.zarr: File exists")) == (2, True)
    assert files() == ["in.npy", "out.zarr"]
    assert files("out.zarr") == []


@posix
def test_an_interrupt_leaves_nothing_behind():
    np.save("in.npy", np.arange(3.0))
    arguments = ["in.npy", "out.zarr", "--shape", "9,3", "--chunks", "1,3"]
    done = python("-X", "faulthandler", program("_halfway.py"), "interrupt", *arguments)
    assert (done.returncode, done.stderr) == (130, "bcast: interrupted\n")
    assert files() == ["in.npy"]


def test_a_dtype_without_a_specification_is_told_of(run):
    np.save("in.npy", np.array(["a", "b"]))
    status, _, err = run("apply", "in.npy", "out.zarr", "--shape", "2,2")
    assert (status, err.count("\n"), err.count("bcast: warning: The data type (FixedLengthUTF32")) == (0, 1, 1)
    assert run("apply", "out.zarr", "out.npy", "--shape", "2,2")[::2] == (0, "")
