"""No call of a private function ends the process: those that Python can reach refuse what they do not expect.

The calls are written as text. A child makes them and says which one is next, so that one that ends it is named.
"""

import importlib
import itertools
import math
import random
import subprocess
import sys

import pytest
from test_sources import HERE, compiled

import bcast

CHILD = """
import ctypes, mmap, sys
import numpy as np
import bcast
from bcast import _adjoint, _elementwise, _kernel
from bcast._api import broadcast, converted, numpy_calls, numpy_names, patching, tiling, unbroadcast
from bcast._runtime import arrays, cpu
from bcast._rules import alignment, arguments, counts, modes
from bcast._runtime import memory, threads
from bcast._rules.alignment import Alignment, aligned
from bcast._sum import core

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

# Private functions, and from what their arguments are taken.
FUNCTIONS = {
    "_kernel.replicate": (ARRAYS, ALIGNMENTS, ARRAYS),
    "_kernel.set_limits": (WILD, WILD),
    "_kernel.repeat_counted": (ARRAYS, COUNTS, WILD, ARRAYS),
    "_kernel.try_conversion": (ARRAYS, DTYPES),
    "_kernel.replicate_converted": (ARRAYS, SHAPES, ARRAYS, ("-1", "0", "1", "9", "2**62")),
    "_kernel.repeat_converted": (ARRAYS, COUNTS, WILD, ARRAYS, ("-1", "0", "1", "9", "2**62")),
    "_elementwise.apply": (
        UFUNCS, (*ARRAYS, "2.5", "True", "row"), (*ARRAYS, "2.5", "row"), RULES, (*WILD, "0", "1"), ARRAYS,
        (*DTYPES, "np.dtype('f8')"), ("2", "3", "4", "0", "9", "None"),
    ),
    "_elementwise.pass_on": (UFUNCS, ARRAYS, ARRAYS, RULES, (*WILD, "0", "1"), ARRAYS, (*ARRAYS, "grid > 0")),
    "_elementwise.choose": (
        (*ARRAYS, "grid > 0", "True"), (*ARRAYS, "2.5", "row"), (*ARRAYS, "True", "row"), ARRAYS,
    ),
    "_elementwise.Found": (),
    "_elementwise.probe": (("b'x'", "None", "'x'", "b'numpy_1.24_ufunc_call_info'"),),
    "_elementwise.set_limits": (WILD,),
    "_adjoint.sum_onto": (ARRAYS, ALIGNMENTS, ARRAYS),
    "_adjoint.sum_counted": (ARRAYS, COUNTS, WILD, ARRAYS),
    "_adjoint.set_limits": (WILD, WILD),
    "_adjoint.targets": (),
    "core.planned": (
        (*WILD, *SHAPES, "[(2, 8, 8, True), (3, 8, 0, False)]", "[(2, 2**70, 8, True)]", "[(2**62, 8, 8, True)] * 9"),
        WILD, ("True", "False", "None"), (*WILD, "0", "64"),
    ),
    "tiling.repeats_argument": ((*WILD, *SHAPES, *ARRAYS, "np.arange(5)"), WILD, WILD),
    "tiling.are_ones": ((*WILD, *SHAPES),),
    "numpy_calls.take_tile": (ARRAYS, (*WILD, *SHAPES)),
    "numpy_calls.take_repeat": (ARRAYS, (*WILD, *SHAPES), (*WILD, "0", "1")),
    "numpy_calls.take_meshgrid": ((*WILD, *ARRAYS), ARRAYS),
    "numpy_calls.take_broadcast_arrays": ((*WILD, *ARRAYS), ARRAYS),
    "numpy_calls.take_where": ((*WILD, *ARRAYS, "grid > 0"), (*WILD, *ARRAYS), (*ARRAYS, "row")),
    "patching.PatchInfo": (WILD, WILD),
    "patching.Place": (),
    "numpy_calls.StandIn": ((*WILD, "len"), (*WILD, "len")),
    "tiling.are_nested": ((*WILD, *SHAPES, "([1], 2)"),),
    "tiling.counts_of_axes": ((*WILD, *SHAPES), SHAPES, SHAPES),
    "tiling.split": (SHAPES, SHAPES, ("True", "False", "None")),
    "tiling.nested_counts": ((*WILD, *SHAPES, "([1, 1], 2)"), SHAPES, SHAPES, ("True", "False", "None")),
    "tiling.counts_along": (NAMES, (*WILD, *SHAPES), (*WILD, *SHAPES), SHAPES, ("True", "False", "None")),
    "unrepeat.lengths_left": (WILD, tuple(f"[{count}]" for count in (*COUNTS, 0, 2)) + ("None", "[]"), SHAPES),
    "unrepeat.wide_dtype": (DTYPES,),
    "elementwise.check_function": ((*WILD, "np.add", "np.negative", "np.matmul", "len"),),
    "converted.follows_values": (DTYPES, DTYPES),
    "unbroadcast.wanted_dtype": (ARRAYS, DTYPES),
    "cpu.use_target": (WILD,),
    "arrays.result_array": (ARRAYS, ARRAYS, SHAPES, NAMES, ("None", "np.dtype('f4')", "np.dtype('O')", "'f4'"), NAMES),
    "arrays.shape_of": (ARRAYS,),
    "arrays.type_of": (ARRAYS,),
    "arrays.size_of": (ARRAYS,),
    "arrays.has_references": (ARRAYS,),
    "arrays.as_dtype": (DTYPES,),
    "arrays.dtype_of": (ARRAYS,),
    "arrays.are_alike": (DTYPES, DTYPES),
    "arrays.are_numbers": (DTYPES, DTYPES),
    "broadcast.is_tensor": ((*WILD, *ARRAYS),),
    "arrays.is_masked": ((*WILD, *ARRAYS),),
    "arrays.is_contiguous": (ARRAYS,),
    "arrays.keeps_dtype": (ARRAYS, ARRAYS),
    "arrays.can_cast": (ARRAYS, DTYPES, ("-1", "0", "3", "4", "9", "2**70", "None")),
    "arrays.may_warn": (ARRAYS, DTYPES),
    "arrays.converted": (ARRAYS, DTYPES),
    "arrays.convert_into": (ARRAYS, ARRAYS),
    "arrays.is_binary": (("None", "np.add", "np.sqrt", "np.matmul", "len", "5"),),
    "arrays.reshaped": (ARRAYS, SHAPES),
    "broadcast.align_like": (SHAPES, SHAPES, (*WILD, *SHAPES), SHAPES, (*WILD, "'numpy'"), WILD, SHAPES),
    "broadcast.into_tensor": (("None", "len", "5"), (*WILD, *ARRAYS)),
    "broadcast.as_array": (NAMES, (*WILD, *ARRAYS)),
    "broadcast.refuse_shape": (WILD,),
    "broadcast.materialise": (ARRAYS, ALIGNMENTS, SHAPES, ARRAYS, NAMES, DTYPES, CASTINGS),
    "converted.materialise_as": (ARRAYS, ALIGNMENTS, SHAPES, ARRAYS, NAMES, DTYPES, CASTINGS),
    "converted.prepared": (ARRAYS, SHAPES, ARRAYS, DTYPES, CASTINGS),
    "converted.convert_onto": (ARRAYS, ALIGNMENTS, ARRAYS, DTYPES, ("True", "False")),
    "converted.convert_counted": (ARRAYS, COUNTS, WILD, ARRAYS, DTYPES, ("True", "False")),
    "converted.convert_nothing": (ARRAYS, ARRAYS, DTYPES),
    "converted.set_limits": (("None", "0", "-1", "'a'", "2**70"),),
    "converted.without_dropped": (ARRAYS, COUNTS, WILD),
    "converted._warn": (("0", "2", "15", "None", "'a'"),),
    "alignment.Alignment": (SHAPES, SHAPES),
    "alignment.aligned": (SHAPES, SHAPES),
    "modes.Mode": (WILD,),
    "modes.align": (SHAPES, SHAPES, WILD, WILD, WILD, WILD, NAMES),
    "modes.align_shapes": (SHAPES, SHAPES, WILD, WILD, WILD, WILD, NAMES, ("True", "None"), ("False", "'a'")),
    "alignment.right_aligned": (SHAPES, SHAPES, NAMES),
    "alignment.pdpd": (SHAPES, SHAPES, WILD, NAMES),
    "alignment.merge": ((*WILD, *(f"({shape}, {other})" for shape in SHAPES for other in SHAPES)), NAMES),
    "arguments._shape_remedy": (("'shape'", *NAMES), (*WILD, *SHAPES, *ARRAYS)),
    "arguments._counts_remedy": (("'reps'", *NAMES), (*WILD, *SHAPES, *ARRAYS)),
    "arguments.shape_argument": (NAMES, (*SHAPES, *WILD)),
    "arguments.mode_of": (WILD, ("None", "('a', None)", "[1]", "()"), NAMES),
    "arguments.dtype_argument": (DTYPES,),
    "arguments.all_plain": ((*WILD, *SHAPES),),
    "arguments.show": ((*WILD, *SHAPES),),
    "arguments.integer": (NAMES, WILD),
    "arguments.integers": (NAMES, (*SHAPES, *WILD), ("True", "False", "None")),
    "arguments.is_countable": ((*WILD, *SHAPES),),
    "arguments.counts_argument": (NAMES, (*SHAPES, *WILD), ("True", "False", "None")),
    "arguments.plain_counts": ((*WILD, *SHAPES, *ARRAYS),),
    "arguments.total_of": ((*WILD, *SHAPES),),
    "arguments.axes_argument": ((*WILD, *SHAPES),),
    "arguments.place_of": (WILD, (*SHAPES, "(1, 2)")),
    "arguments.check_rank": (NAMES, SHAPES),
    "arguments.refuse_size": (NAMES, SHAPES),
    "counts.Counts": (WILD,),
    "counts.counts_of_array": ((*WILD, *ARRAYS, "np.arange(5)", "np.arange(9)[::-2]", "np.full(9999, 2**62)"),),
    "counts.counts_of_tuple": (("None", "()", "(2, 3)", "(-1, 2)", "(2**62, 2**62)", "(2**64, 1)", "('a',)", "[1]"),),
    "alignment.expect_default_axis": (WILD, NAMES),
    "numpy_names.tuple_of_one": ((*WILD, *SHAPES),),
    "memory.MemoryInfo": (WILD, WILD, WILD),
    "memory.let_time_pass": (("None", "0.0", "1e300", "'a'"),),
    "threads.free_threads": (WILD,),
    "threads.note_loss": (("None", "0.0", "-1.0", "1e-6", "float('nan')", "'a'"), WILD),
    "threads.set_order": (WILD,),
    "threads.set_clock": (WILD,),
    "threads.recorded_shares": (("None", "-1", "0", "1", "7", "'a'"), ("None", "-1", "0", "1", "3", "2**31", "'a'")),
    "threads.get_pool_limit": (),
    "threads.set_pool_limit": (WILD,),
    "threads._available": (),
    "threads._positive": (WILD,),
    "threads._is_forked": (),
    "memory.Extent": (),
    "memory.is_mapped": (ARRAYS,),
    "memory.forget": (ARRAYS,),
    "memory.set_limits": (WILD,),
    "memoryview": (("memory.Extent()", "memory.Extent.__new__(memory.Extent)"),),
}  # fmt: skip

# What once read or wrote memory of nobody's.
REFUSED = {
    "no_array": ("arrays.shape_of(None)", "TypeError"),
    "no_array_to_reshape": ("arrays.reshaped(None, (1,))", "TypeError"),
    "nothing_like": ("arrays.result_array(None, None, (2,), 'x')", "TypeError"),
    "no_data": ("broadcast.materialise(None, Alignment((3,), (3,)), None, 'x')", "TypeError"),
    "no_alignment": ("_kernel.replicate(row, None, grid)", "TypeError"),
    "no_alignment_of_a_sum": ("_adjoint.sum_onto(grid, None, row)", "TypeError"),
    "an_empty_alignment": ("_kernel.replicate(row, Alignment.__new__(Alignment), grid)", "TypeError"),
    "an_empty_alignment_of_a_sum": ("_adjoint.sum_onto(grid, Alignment.__new__(Alignment), row)", "TypeError"),
    "too_many_axes": ("arrays.result_array(None, row, (1,) * 300, 'x')", "ValueError"),
    "too_many_axes_of_a_shape": ("arrays.reshaped(row, (1, 3) * 300)", "ValueError"),
    "too_many_axes_of_a_target": ("alignment.right_aligned((3,), (1,) * 99 + (3,), 'x')", "ValueError"),
    "too_many_axes_after_others": ("alignment.pdpd((3,), (3,) + (1,) * 99, 0, 'x')", "ValueError"),
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
    "counts_of_references": (
        "_kernel.repeat_counted(objects, counts.counts_of_tuple((1, 1)), 0, objects)",
        "TypeError",
    ),
    "no_counts_of_a_sum": ("_adjoint.sum_counted(row, None, 0, grid)", "TypeError"),
    "counts_of_a_sum_along_no_axis": ("_adjoint.sum_counted(six, twos, 1, row)", "ValueError"),
    "counts_of_a_sum_for_others": ("_adjoint.sum_counted(six, counts.counts_of_tuple((3, 3)), 0, row)", "ValueError"),
    "counts_of_a_sum_of_others": ("_adjoint.sum_counted(row, twos, 0, row)", "ValueError"),
    "counts_of_a_sum_that_are_empty": (f"_adjoint.sum_counted(row, {COUNTS[2]}, 0, row)", "ValueError"),
    "counts_of_a_sum_that_is_too_long": (
        "_adjoint.sum_counted(row, counts.counts_of_array(np.array([2**62, 0, 2**62])), 0, row)",
        "ValueError",
    ),
    "lengths_of_a_sum": ("_adjoint.sum_onto(grid, aligned((2, 3), (3,)), row)", "ValueError"),
    "lengths_of_a_copy": ("_kernel.replicate(grid, aligned((2, 3), (6,)), grid)", "ValueError"),
    "state_from_a_pickle": ("Alignment((3,), (3,)).__setstate_cython__(((2, 3), (3,)))", "AttributeError"),
    "other_items": ("_kernel.replicate(turned, aligned((2, 3), (2, 3)), number)", "TypeError"),
    "references": ("_kernel.replicate(objects, Alignment((2, 3), (2, 3)), wide)", "TypeError"),
    "no_extent": ("memoryview(memory.Extent())", "BufferError"),
}


def picked(name, most):
    """Return calls of one function: all that the table makes, or `most` of them."""
    pools = FUNCTIONS[name]
    rng = random.Random(name)
    if math.prod(map(len, pools)) <= most:
        choices = itertools.product(*pools)
    else:
        choices = [[rng.choice(pool) for pool in pools] for _ in range(most)]
    return [f"{name}({', '.join(arguments)})" for arguments in choices]


def outcomes(calls):
    """Make the calls in a child; return how they ended, each by the name of what it raised."""
    command = [sys.executable, "-W", "ignore", "-c", CHILD]
    done = subprocess.run(command, input="\n".join(calls), capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    last = calls[len(lines) - 1] if lines else "none"
    assert done.returncode == 0, f"exit status {done.returncode}, the last call was {last}: {done.stderr}"
    return [line.partition(" ")[2] for line in lines]


def test_no_call_ends_the_process():
    calls = [call for name in FUNCTIONS for call in picked(name, 1000)]
    assert len(outcomes(calls)) == len(calls)


@pytest.mark.drill
@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_call_of_many_ends_the_process(name):
    calls = picked(name, 50_000)
    assert len(outcomes(calls)) == len(calls)


def test_what_is_refused():
    expected = {name: error for name, (_, error) in REFUSED.items()}
    assert dict(zip(REFUSED, outcomes([call for call, _ in REFUSED.values()]), strict=True)) == expected


def test_no_function_is_missing():
    names = [str(path.relative_to(HERE / "src/bcast").with_suffix("")).replace("/", ".") for path in compiled()]
    modules = [importlib.import_module(f"bcast.{name}") for name in names]
    found = {
        f"{module.__name__.rpartition('.')[2]}.{name}"
        for module in modules
        for name, value in vars(module).items()
        if callable(value) and getattr(value, "__module__", None) == module.__name__ and name not in bcast.__all__
    }
    assert found == {name for name in FUNCTIONS if name != "memoryview"}
