"""No call of a private function ends the process: functions that Python can reach refuse unexpected arguments.

The calls are written as text. A child process makes them and prints each one before it starts, so that a call that ends
the process can be named.
"""

import importlib
import inspect
import random
import subprocess
import sys

import pytest
from test_sources import HERE, compiled

import bcast

MODULES = [str(path.relative_to(HERE / "src").with_suffix("")).replace("/", ".") for path in compiled()]

CHILD = """
import ctypes, mmap, sys
import numpy as np
import bcast
from bcast import _reduction, _elementwise, _kernel
from bcast._api import converted, patching
from bcast._rules import alignment as rules, counts
from bcast._rules.alignment import Alignment, aligned
from bcast._runtime import arrays

for name in sys.argv[1:]:
    __import__(name)

held = []

def fenced(shape, dtype):
    "Return an array that ends where a page begins that nobody may touch."
    array = np.ones(shape, dtype)
    if sys.platform == "win32" or array.dtype == object:
        return array
    map_ = mmap.mmap(-1, 1 << 16)
    fence = len(map_) - mmap.PAGESIZE
    address = ctypes.addressof(ctypes.c_char.from_buffer(map_)) + fence
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(address), ctypes.c_size_t(mmap.PAGESIZE), 0) == 0
    held.append(map_)
    return np.ndarray(array.shape, array.dtype, map_, fence - array.nbytes)

class Liar(np.ndarray):
    dtype = shape = strides = ndim = size = flags = property(lambda self: 1 / 0)

grid, row, column, empty = fenced((2, 3), "f4"), fenced(3, "f4"), fenced((2, 1), "f4"), fenced((0, 3), "f4")
wide, number, turned = fenced((2, 3), "f8"), fenced((), "c16"), fenced((2, 3, 4), "f4").transpose(2, 0, 1)
axes, objects, strings, liar = fenced((1,) * 64, "i8"), fenced((2, 3), object), fenced((2, 3), "S4"), grid.view(Liar)
twos, six = counts.counts_of_tuple((2, 2, 2)), fenced(6, "f4")
masked, locked = np.ma.array(grid), np.broadcast_to(row, (2, 3))

for i, call in enumerate(sys.stdin):
    print(i, end=" ", flush=True)
    try:
        eval(call)
    except Exception as error:
        print(type(error).__name__)
    else:
        print("returned")
"""

ARRAYS = (
    "grid", "row", "column", "empty", "wide", "number", "turned", "axes", "objects", "strings", "liar", "masked",
    "locked", "grid[::-1]", "wide.T", "None", "5",
)  # fmt: skip
SHAPES = (
    "None", "()", "(2, 3)", "(3,)", "(1, 3)", "(2, 1)", "(2, 3, 4)", "(0, 3)", "(-1, 3)", "(-(2**63), 3)", "(2, 2**62)",
    "(2**63, 3)", "(2**64, 3)", "(2.5, 3)", "('a', 3)", "(None, 3)", "(1,) * 64", "(1,) * 65", "(2,) * 65", "(0,) * 65",
    "(2, 1) * 99", "(1, 2) * 99", "[2, 3]", "'ab'", "5",
)  # fmt: skip
FITTING = (
    "(2, 3), (1, 3)", "(2, 3), (2, 1)", "(2, 3), (1, 1)", "(2, 3), (2, 3)", "(2, 2, 3), (1, 2, 3)", "(3,), (3,)",
    "(2, 1, 3), (2, 1, 1)", "(4, 2, 3), (4, 2, 3)", "(4, 2, 3), (1, 2, 3)", "(3,), (1,)", "(0, 3), (1, 3)", "(), ()",
    "(0, 3), (0, 3)", "(1,) * 64, (1,) * 64",
)  # fmt: skip
ALIGNMENTS = (
    *("None", "5", "Alignment.__new__(Alignment)"),
    *[f"Alignment({shapes})" for shapes in FITTING] * 100,
    *[f"aligned({shape}, {source})" for shape in SHAPES for source in SHAPES],
)
COUNTS = (
    "None", "5", "counts.Counts.__new__(counts.Counts)", "counts.counts_of_array(np.array([1, 1]))",
    "counts.counts_of_array(np.array([0, 0, 0]))", "counts.counts_of_array(np.array([-1, 3, 1]))",
    "counts.counts_of_array(np.array([2**62, 0, 2**62]))", "counts.counts_of_array(np.full(5000, 2**61))",
    "counts.counts_of_tuple((2, 1, 0))", "counts.counts_of_tuple((1, 1))", "counts.counts_of_tuple((0, -1, 4))",
    "counts.counts_of_tuple((1,) * 6)", "counts.counts_of_tuple((2,))", "counts.counts_of_tuple(())",
)  # fmt: skip
LISTS = (*(f"[{count}]" for count in (*COUNTS, 0, 2)), "None", "[]")
NAMES = ("'x'", "None", "5")
DTYPES = (
    "None", "np.dtype('u1')", "np.dtype('f4')", "np.dtype('>f8')", "np.dtype('O')", "np.dtype('S')", "np.dtype('M8')",
    "np.dtype('T')", "np.dtype([('a', 'i4')])", "np.dtype(('f4', (2,)))", "'f4'", "5",
)  # fmt: skip
CASTINGS = ("'same_kind'", "'unsafe'", "'no'", "'other'", "None", "5")
WILD = (
    "None", "5", "-1", "2**70", "2.5", "float('nan')", "'explicit'", "'pdpd'", "'bidirectional'", "b'a'", "(2, 3)",
    "[1]", "(0, 1)", "{1}", "row", "np.int64(1)", "np.array(1)", "object()",
)  # fmt: skip

UFUNCS = (
    "np.add", "np.add", "np.power", "np.less", "np.divmod", "np.negative", "np.matmul", "np.ldexp", "None", "len",
    "np.frompyfunc(max, 2, 1)",
)  # fmt: skip
RULES = ("0", "1", "2", "3", "-1", "7", "2**40", "None")

# What is given to an argument of a name, or by its annotation; to another one, anything. All get anything now and then.
ANYTHING = (*WILD, *SHAPES, *ARRAYS, *DTYPES, *COUNTS, "[(2, 8, 8, True), (3, 8, 0, False)]")
POOLS = {
    "a array b condition data grad like out where x xi y A args NDArray[Any]": (*ARRAYS, "2.5", "grid > 0"),
    "function ufunc": UFUNCS,
    "alignment": ALIGNMENTS,
    "counts": COUNTS,
    "name names str": (*NAMES, "'shape'", "'reps'", "b'numpy_1.24_ufunc_call_info'"),
    "dtype DTypeLike np.dtype[Any]": (*DTYPES, "np.dtype('f8')"),
    "casting": (*CASTINGS, "-1", "0", "3", "4", "2**70"),
    "Shape shape source target tuple[int,...]": (*SHAPES, "(1, 2)"),
    "along axis": (*WILD, "0", "1"),
    "block_bytes piece size": ("-1", "0", "1", "7", "8", "2**62", "2**70", "None"),
    "share streamed shares threads": ("-1", "0", "1", "7", "1000", "2**70", "None"),
    "rule": RULES,
    "role": ("rules.LIKE", "rules.GRAD", "rules.GRAD_OF_SCALAR", "rules.SHAPE"),
    "bool": ("True", "False", "None"),
}
POOL_OF = {name: pool for names, pool in POOLS.items() for name in names.split()}


def private():
    return {
        f"{name}.{key}": value
        for name in MODULES
        for key, value in vars(importlib.import_module(name)).items()
        if callable(value) and getattr(value, "__module__", None) == name and key not in bcast.__all__
    }


def picked(name, function, count):
    """Return calls of one function, with arguments as many as it takes."""
    rng = random.Random(name)
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # of classes in C
        parameters = None
    calls = []
    for _ in range(count if parameters is None or parameters else 1):
        pools = [ANYTHING] * rng.randint(0, 3) if parameters is None else [pool_of(each, name) for each in parameters]
        arguments = [rng.choice(ANYTHING if rng.random() < 0.1 else pool) for pool in pools]
        calls.append(f"{name}({', '.join(arguments)})")
    return calls


def pool_of(parameter, name):
    """Return what is given to an argument; `*args` get one. The data of a rule is its shape."""
    if parameter.name == "data" and name.startswith("bcast._rules.alignment."):
        return POOL_OF["shape"]
    annotation = str(parameter.annotation).removesuffix(" | None").replace(" ", "")
    if parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_KEYWORD):
        return ("**{}",)
    return POOL_OF.get(annotation) or POOL_OF.get(parameter.name, ANYTHING)


# Calls that once read or wrote foreign memory.
REFUSED = {
    "no_array_to_stack": ("patching.take_stack((None, 3), 2**70)", "returned"),
    "no_array": ("arrays.shape_of(None)", "TypeError"),
    "no_array_to_reshape": ("arrays.reshaped(None, (1,))", "TypeError"),
    "nothing_like": ("arrays.result_array(None, None, (2,), 'x')", "TypeError"),
    "no_data": ("converted.materialise(None, Alignment((3,), (3,)), None, 'x')", "TypeError"),
    "no_alignment": ("_kernel.replicate(row, None, grid)", "TypeError"),
    "no_alignment_of_a_sum": ("_reduction.sum_onto(grid, None, row)", "TypeError"),
    "an_empty_alignment": ("_kernel.replicate(row, Alignment.__new__(Alignment), grid)", "TypeError"),
    "an_empty_alignment_of_a_sum": ("_reduction.sum_onto(grid, Alignment.__new__(Alignment), row)", "TypeError"),
    "too_many_axes": ("arrays.result_array(None, row, (1,) * 300, 'x')", "ValueError"),
    "too_many_axes_of_a_shape": ("arrays.reshaped(row, (1, 3) * 300)", "ValueError"),
    "too_many_axes_of_a_target": ("rules.right_aligned((3,), (1,) * 99 + (3,), 'x')", "ValueError"),
    "too_many_axes_after_others": ("rules.pdpd((3,), (3,) + (1,) * 99, 0, 'x')", "ValueError"),
    "lengths_that_are_missing": ("Alignment((2, 3), (3,))", "ValueError"),
    "lengths_that_do_not_fit": ("Alignment((2, 3), (2, 2))", "ValueError"),
    "lengths_below_0": ("Alignment((-1,), (1,))", "ValueError"),
    "lengths_that_are_none": ("Alignment((2.5,), (1,))", "TypeError"),
    "shape_that_is_none": ("Alignment(None, None)", "TypeError"),
    "no_counts": ("_kernel.repeat_counted(row, None, 0, grid)", "TypeError"),
    "counts_that_are_empty": (f"_kernel.repeat_counted(row, {COUNTS[2]}, 0, grid)", "ValueError"),
    "counts_for_others": ("_kernel.repeat_counted(row, counts.counts_of_tuple((3, 3)), 0, six)", "ValueError"),
    "counts_for_more": ("_kernel.repeat_counted(row, counts.counts_of_tuple((3, 3, 1)), 0, six)", "ValueError"),
    "counts_along_no_axis": ("_kernel.repeat_counted(row, twos, 1, six)", "ValueError"),
    "counts_of_other_items": ("_kernel.repeat_counted(row, twos, 0, wide.reshape(6))", "TypeError"),
    "counts_of_references": ("_kernel.repeat_counted(objects, counts.counts_of_tuple((1,)), 0, objects)", "TypeError"),
    "no_counts_of_a_sum": ("_reduction.sum_counted(row, None, 0, grid)", "TypeError"),
    "counts_of_a_sum_along_no_axis": ("_reduction.sum_counted(six, twos, 1, row)", "ValueError"),
    "counts_of_a_sum_for_others": ("_reduction.sum_counted(six, counts.counts_of_tuple((3, 3)), 0, row)", "ValueError"),
    "counts_of_a_sum_of_others": ("_reduction.sum_counted(row, twos, 0, row)", "ValueError"),
    "counts_of_a_sum_that_are_empty": (f"_reduction.sum_counted(row, {COUNTS[2]}, 0, row)", "ValueError"),
    "counts_of_a_sum_that_is_too_long": (f"_reduction.sum_counted(row, {COUNTS[6]}, 0, row)", "ValueError"),
    "lengths_of_a_sum": ("_reduction.sum_onto(grid, aligned((2, 3), (3,)), row)", "ValueError"),
    "lengths_of_a_copy": ("_kernel.replicate(grid, aligned((2, 3), (6,)), grid)", "ValueError"),
    "state_from_a_pickle": ("Alignment((3,), (3,)).__setstate_cython__(((2, 3), (3,)))", "AttributeError"),
    "other_items": ("_kernel.replicate(turned, aligned((2, 3), (2, 3)), number)", "TypeError"),
    "means_of_another_dtype": ("_reduction.average_onto(wide, Alignment((2, 3), (1, 3)), row, 5, row)", "TypeError"),
    "references": ("_kernel.replicate(objects, Alignment((2, 3), (2, 3)), wide)", "TypeError"),
}


def outcomes(calls):
    """Make the calls in a child; return how they ended, each by the name of what it raised."""
    command = [sys.executable, "-W", "ignore", "-c", CHILD, *MODULES]
    done = subprocess.run(command, input="\n".join(calls), capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    last = calls[len(lines) - 1] if lines else "none"
    assert done.returncode == 0, f"exit status {done.returncode}, the last call was {last}: {done.stderr}"
    return [line.partition(" ")[2] for line in lines]


def test_no_call_ends_the_process():
    calls = {name: picked(name, function, 600) for name, function in private().items()}
    found = outcomes([call for each in calls.values() for call in each])
    ended = iter(found)
    returning = [name for name, each in calls.items() if "returned" in [next(ended) for _ in each]]
    assert len(calls) > 60
    assert len(returning) > 0.8 * len(calls)  # they get beyond the checks


@pytest.mark.drill
@pytest.mark.parametrize("part", range(16))
def test_no_call_of_many_ends_the_process(part):
    for name, function in list(private().items())[part::16]:
        calls = picked(name, function, 50_000)
        assert len(outcomes(calls)) == len(calls)


def test_refused_arguments():
    expected = {name: error for name, (_, error) in REFUSED.items()}
    assert dict(zip(REFUSED, outcomes([call for call, _ in REFUSED.values()]), strict=True)) == expected
