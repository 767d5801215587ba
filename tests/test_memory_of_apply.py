"""`apply`, `tile` and `repeat` of files need little memory for inputs and outputs of any size."""

import json
import random
import sys

import numpy as np
import pytest
from _commands import python

pytestmark = [
    pytest.mark.usefixtures("folder"),
    pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of a process's memory where Linux tells it"),
]

MB = 10**6

PROGRAM = """
import json, sys
from pathlib import Path
from bcast.__main__ import main
status = main(sys.argv[1:])
peak = int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) * 1024
print(json.dumps([status, peak]))
"""


def peak(*arguments):
    """Run a command in a process of its own; give the peak of its memory."""
    done = python("-c", PROGRAM, *map(str, arguments))
    assert done.returncode == 0, done.stderr
    status, most = json.loads(done.stdout.splitlines()[-1])
    assert status == 0, done.stderr
    return most


NUMBERS = [n if n in {0, 5} else pytest.param(n, marks=pytest.mark.soak) for n in (*range(9), 18, 24, 26)]


@pytest.mark.parametrize("number", NUMBERS)
def test_memory_does_not_grow_with_the_files(number):
    source = random.Random(f"memory {number}")
    own, wanted = source.choice([("f4", "f4"), ("f8", "f8"), ("u1", "u1"), ("u1", "f4"), ("f8", "f4"), ("i2", "c16")])
    shape = source.choice([(8, 1100, 1300), (11_000_000,), (3000, 4000), (40, 50, 60, 70), (2, 3, 1_900_000)])
    size = np.prod(shape) * np.dtype(wanted).itemsize
    target = list(shape)
    if source.random() < 0.7:  # or else the data is as large as the output
        axis = source.randrange(len(shape))
        shape = (*shape[:axis], 1, *shape[axis + 1 :])
    target.insert(0, int(max(1, source.uniform(300, 400) * MB // size)))
    data = np.random.default_rng(number).integers(0, 200, shape).astype(own)
    np.save("in.npy", np.asfortranarray(data) if source.random() < 0.5 else data)
    options = ["--shape", ",".join(map(str, target)), "--dtype", wanted]
    assert peak("apply", "in.npy", "out.npy", *options) < 170 * MB
    written = np.load("out.npy", mmap_mode="r")
    for index in range(0, target[0], 7):
        np.testing.assert_array_equal(written[index], np.broadcast_to(data, target)[index].astype(wanted), strict=True)


SHAPES = [("F", "1,30000,9000"), *[pytest.param(order, "3,30000,3000", marks=pytest.mark.soak) for order in "CF"]]


@pytest.mark.parametrize(("order", "shape"), SHAPES)
def test_neither_input_nor_output_stays_in_memory(order, shape):
    data = np.zeros((30000, 3000 if shape.endswith(",3000") else 9000), np.uint8, order)
    data[:, 7] = 3
    np.save("in.npy", data)
    assert peak("apply", "in.npy", "out.npy", "--shape", shape) < (120 if order == "C" else 200) * MB
    assert (np.load("out.npy", mmap_mode="r")[:, :, 7] == 3).all()


@pytest.mark.parametrize("command", [["tile", "--reps", "20,10"], ["repeat", "--repeats", "20,10", "--axis", "0,1"]])
def test_repeated_files_do_not_stay_in_memory(command):
    np.save("in.npy", np.arange(125_000.0).reshape(250, 500))
    assert peak(*command, "in.npy", "out.npy") < 150 * MB
    assert np.load("out.npy", mmap_mode="r").shape == (5000, 5000)
