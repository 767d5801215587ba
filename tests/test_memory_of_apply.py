"""The bound on memory that `apply` prints holds, whatever is read and written."""

import importlib.util
import json
import random
import re
import sys

import numpy as np
import pytest
from _commands import files, python

pytestmark = [
    pytest.mark.usefixtures("folder"),
    pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of a process's memory where Linux tells it"),
]

ZARR = importlib.util.find_spec("zarr") is not None
MB = 10**6

PROGRAM = """
import json, sys
from bcast.__main__ import main
from bcast._cli.apply import peak
status = main(sys.argv[1:])
print(json.dumps([status, peak()]))
"""


def apply(*arguments):
    """Run in a process of its own; give the status, the peak of its memory, and what it complains of."""
    done = python("-c", PROGRAM, "apply", *map(str, arguments))
    assert done.returncode == 0, done.stderr
    status, most = json.loads(done.stdout.splitlines()[-1])
    return status, most, done.stderr


def case(number):
    """Choose what is read and written; give the arguments and the arrays' names."""
    source = random.Random(f"memory {number}")
    own, wanted = source.choice([("f4", "f4"), ("f8", "f8"), ("u1", "u1"), ("u1", "f4"), ("f8", "f4"), ("i2", "c16")])
    shape = source.choice([(8, 1100, 1300), (11_000_000,), (3000, 4000), (40, 50, 60, 70), (2, 3, 1_900_000)])
    size = np.prod(shape) * np.dtype(wanted).itemsize
    target = list(shape)
    stretched = source.random() < 0.7
    if stretched:  # or else the data is as large as the output
        axis = source.randrange(len(shape))
        shape = (*shape[:axis], 1, *shape[axis + 1 :])
    target.insert(0, int(max(1, source.uniform(150, 250) * MB // size)))
    data = np.random.default_rng(number).integers(0, 200, shape).astype(own)
    in_name, out_name = (source.choice([f"{name}.npy", f"{name}.zarr"][: 1 + ZARR]) for name in ("in", "out"))
    if in_name == "in.npy":
        np.save(in_name, np.asarray(data, order=source.choice("CF")))
    else:
        import zarr

        chunks = tuple(max(1, n // source.choice([1, 2, 7])) for n in shape)
        array = zarr.create_array(in_name, shape=shape, dtype=own, chunks=chunks)
        array[...] = data
    options = ["--shape", ",".join(map(str, target)), "--dtype", wanted]
    if out_name == "out.zarr" and source.random() < 0.7:
        options += ["--chunks", ",".join([str(max(1, n // source.choice([2, 3, 7]))) for n in target])]
    return in_name, out_name, data, tuple(target), wanted, options


SOAK = {*range(9), 18, 24, 26}  # some are of Zarr, with chunks of many sizes
NUMBERS = [
    n if n in {0, 5} else pytest.param(n, marks=pytest.mark.soak if n in SOAK else pytest.mark.drill) for n in range(40)
]


@pytest.mark.parametrize("number", NUMBERS)
def test_the_bound_holds(number):
    in_name, out_name, data, shape, dtype, options = case(number)
    begun = [in_name, out_name, *options, "--max-memory"]
    status, _, err = apply(*begun, "1MB")
    least = re.search("`max_memory` expected at least ([0-9]+) MB, of which ([0-9]+) MB are in use, got 1 MB", err)
    assert status == 2
    assert files() == [in_name]
    asked = int(least[1]) + random.Random(number).choice([2, 10, 50])  # what is in use differs a little between runs
    status, most, err = apply(*begun, f"{asked}MB")
    promised = re.search("bcast: at most ([0-9]+) MB, of which ([0-9]+) MB are in use", err)
    assert status == 0, err
    assert int(promised[1]) <= asked
    assert most <= int(promised[1]) * MB
    if out_name == "out.npy":
        written = np.load(out_name, mmap_mode="r")
    else:
        import zarr

        written = zarr.open_array(out_name, mode="r")
    for index in range(0, shape[0], 7):
        np.testing.assert_array_equal(written[index], np.broadcast_to(data, shape)[index].astype(dtype), strict=True)


SHAPES = [("F", "1,30000,9000"), *[pytest.param(order, "3,30000,3000", marks=pytest.mark.soak) for order in "CF"]]


@pytest.mark.parametrize(("order", "shape"), SHAPES)
def test_neither_input_nor_output_stays_in_memory(order, shape):
    """Without a bound of the user's, too."""
    data = np.zeros((30000, 3000 if shape.endswith(",3000") else 9000), np.uint8, order)
    data[:, 7] = 3
    np.save("in.npy", data)
    status, most, _ = apply("in.npy", "out.npy", "--shape", shape)
    assert status == 0
    assert most < (120 if order == "C" else 200) * MB
    assert (np.load("out.npy", mmap_mode="r")[:, :, 7] == 3).all()
