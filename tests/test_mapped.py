"""Outputs in mapped files: correct for every mode and layout, and soon released from this process's memory."""

import json
import mmap
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from _commands import python

import bcast
from bcast._runtime import core as runtime

pytestmark = pytest.mark.usefixtures("folder")

KERNEL = bcast._copy.run
MB = 10**6


@pytest.fixture
def small():
    """Take small maps for large ones, and cut them for many shares and pieces."""
    runtime.set_limits(1)
    KERNEL.set_limits(share=4096, streamed=10**6)
    bcast._api.converted.set_limits(4096)
    yield
    runtime.set_limits()
    KERNEL.set_limits()
    bcast._api.converted.set_limits()


def memmap(name="out.bin", dtype="f4", mode="w+", shape=(700, 1000), **options):
    return np.memmap(name, dtype, mode, shape=shape, **options)


def contents(out, name="out.bin"):
    """The contents of the file, not of the map."""
    out.flush()
    return np.fromfile(name, out.dtype).reshape(out.shape)


DATA = {
    "row": np.arange(1000, dtype="f4"),
    "column": np.arange(700, dtype="f4")[:, None],
    "scalar": np.float32(3),
    "whole": np.arange(700_000, dtype="f4").reshape(700, 1000),
    "transposed": np.arange(700_000, dtype="f4").reshape(1000, 700).T,
    "converted": np.arange(1000, dtype="i2"),
    "converted_whole": np.arange(700_000, dtype="i4").reshape(700, 1000),
    "converted_column": np.arange(700, dtype="u1")[:, None],
    "strided": np.arange(2000, dtype="f4")[::-2],
}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
def test_results(data):
    out = memmap()
    expected = np.broadcast_to(data, out.shape).astype("f4")

    def work(threads):
        bcast.set_num_threads(threads)
        assert bcast.broadcast(data, out.shape, out=out, casting="unsafe") is out

    for threads in (1, 2, 3):
        out[:] = -1
        with ThreadPoolExecutor(1) as pool:
            pool.submit(work, threads).result()
        np.testing.assert_array_equal(contents(out), expected)
    out[:] = np.arange(700_000).reshape(700, 1000)  # which is the data, too
    expected = np.broadcast_to(np.array(out[350]), out.shape)
    bcast.broadcast(out[350], out.shape, out=out)
    np.testing.assert_array_equal(contents(out), expected)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("data_mode", ["r", "r+", "c"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_data_in_a_mapped_file(data_mode, dtype):
    expected = np.arange(700_000, dtype="f4").reshape(700, 1000)
    expected.tofile("in.bin")
    data = memmap("in.bin", mode=data_mode)
    if data_mode != "r":
        expected[5] = data[5] = 1.5
    out = memmap(dtype=dtype, shape=(3, 700, 1000))
    for _ in range(2):
        bcast.broadcast(data, out.shape, out=out)
        np.testing.assert_array_equal(out, np.broadcast_to(expected, out.shape))
        np.testing.assert_array_equal(data, expected)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_private_maps_keep_their_changes(dtype):
    """A private map loses what was written if its pages are forgotten."""
    np.zeros((700, 1000), dtype).tofile("out.bin")
    out = memmap(dtype=dtype, mode="c")
    assert not runtime.is_mapped(out)
    bcast.broadcast(np.arange(1000, dtype="f4"), out.shape, out=out)
    np.testing.assert_array_equal(out, np.broadcast_to(np.arange(1000), out.shape))
    assert (np.fromfile("out.bin", dtype) == 0).all()


@pytest.mark.usefixtures("small")
def test_which_arrays_are_taken():
    out = memmap()
    assert runtime.is_mapped(out)
    assert runtime.is_mapped(out[3:, ::2].T)
    assert runtime.is_mapped(np.asarray(out)[1:].reshape(-1))
    assert runtime.is_mapped(memmap(mode="r"))
    assert not runtime.is_mapped(out.copy())
    assert not runtime.is_mapped(out + 1)
    assert not runtime.is_mapped(np.zeros(3)[1:])
    anonymous = np.frombuffer(mmap.mmap(-1, 4096), "u1")
    assert not runtime.is_mapped(anonymous)
    with open("out.bin", "r+b") as file:  # noqa: PTH123 - a private map without a memmap
        private = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY), "f4")
    assert not runtime.is_mapped(private)
    runtime.set_limits(out.nbytes)
    assert runtime.is_mapped(out[:1])
    runtime.set_limits(out.nbytes + 1)
    assert not runtime.is_mapped(out)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("part", [np.s_[100:600], np.s_[::-1], np.s_[:, 3:900:7], np.s_[1:], np.s_[7, 5:20], np.s_[:0]])
def test_views(part):
    out = memmap(offset=123 * 4)
    out[:] = -1
    expected = np.array(out)
    for array in (out, expected):
        to = np.asarray(array)[1:].reshape(-1, 500) if part == np.s_[1:] else array[part]
        data = np.arange(to.shape[-1], dtype="f4")
        (bcast.broadcast(data, to.shape, out=to) if array is out else np.copyto(to, data))
    np.testing.assert_array_equal(out, expected)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_other_functions(dtype):
    data = np.arange(60_000, dtype="f4").reshape(300, 200)
    counts = np.arange(300) % 4
    out = memmap(dtype=dtype, shape=(600, 600))
    bcast.tile(data, (2, 3), out=out)
    np.testing.assert_array_equal(out, np.tile(data, (2, 3)))
    bcast.repeat(data, (2, 3), axis=(0, 1), out=out)
    np.testing.assert_array_equal(out, np.repeat(np.repeat(data, 2, 0), 3, 1))
    out = memmap(dtype=dtype, shape=(int(counts.sum()), 200))
    bcast.repeat(data, counts, axis=0, out=out)
    np.testing.assert_array_equal(out, np.repeat(data, counts, 0))
    out = memmap(dtype=dtype, shape=(200,))
    bcast.unbroadcast(data, (200,), out=out, dtype=dtype)
    np.testing.assert_allclose(out, data.sum(0, dtype="f8"), rtol=1e-6)


PROGRAM = r"""
import json, re, sys
from pathlib import Path
import numpy as np, bcast

def peak():
    return int(re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())[1]) * 1024

dtype, own, shape, threads = json.loads(sys.argv[1])
bcast.set_num_threads(threads)
if own is None:
    data = np.arange(shape[-1], dtype=dtype)
else:
    data = np.memmap("in.bin", own, "r", shape=(shape[1], shape[2]))
out = np.memmap("out.bin", dtype, "w+", shape=tuple(shape))
before = peak()
bcast.broadcast(data, out.shape, out=out, casting="unsafe")
print(peak() - before)
assert (out[:, ::1000] == data[::1000] if own else out[::1000] == data).all()
"""

LARGE = {
    "from_a_row": ("f4", None, (40_000, 1000), 1),
    "from_a_mapped_file": ("f4", "f4", (1, 40_000, 1000), 2),
    "converted": ("f4", "f8", (2, 20_000, 1000), 1),
    "converted_at_once": ("f4", "f8", (1, 40_000, 1000), 2),
}


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of a process's memory where Linux tells it")
@pytest.mark.parametrize(("dtype", "own", "shape", "threads"), LARGE.values(), ids=LARGE)
def test_pages_do_not_stay_in_memory(dtype, own, shape, threads):
    if own:
        np.full(shape[1] * shape[2], 3, own).tofile("in.bin")
    done = python("-c", PROGRAM, json.dumps([dtype, own, shape, threads]))
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 60 * MB
