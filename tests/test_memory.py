"""The memory of large results: it comes from idle blocks of earlier results, within a limit that users control."""

import ctypes
import os
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from _commands import printed
from test_errors import refuse

import bcast
from bcast._runtime import core as runtime
from bcast._runtime.arrays import result_array

MIB = 1 << 20
LEAST = MIB // 2
LARGE = 2 * MIB

recycles = pytest.mark.skipif(sys.platform == "win32", reason="no pages are kept there")
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at /proc")
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")


@pytest.fixture(autouse=True)
def an_empty_store():
    """Restore the limit after each test."""
    previous = bcast.set_idle_limit(0)
    bcast.set_idle_limit(1024 * MIB)
    yield
    bcast.set_idle_limit(0)
    bcast.set_idle_limit(previous)


def idle_bytes():
    return bcast.memory_info().idle


def result(nbytes, value=1):
    return bcast.broadcast(np.uint8(value), (nbytes,))


def new(shape, dtype=np.uint8):
    """The array for a result, which has not been written to yet."""
    return result_array(None, np.empty(0, dtype), shape, "shape")


def handler_of(*array):
    return np._core.multiarray.get_handler_name(*array)


def run(script, **variables):
    forks = "ignore:This process:DeprecationWarning"  # Python 3.12 and later warn of forks beside threads
    code = f"import os, sys\nimport numpy as np, bcast\n{script}"
    return printed("-W", "error", "-W", forks, "-c", code, **variables)


# What the results are to NumPy


@recycles
def test_only_large_results_get_our_pages():
    default = handler_of()
    assert handler_of(new((LEAST,))) == "bcast"
    assert handler_of(new((LEAST // 16, 2), np.float64)) == "bcast"
    for shape in [(), (LEAST - 1,), (1 << 40, 0), (0, 1 << 62)]:
        assert handler_of(new(shape)) == default
    assert handler_of(new((LEAST,), object)) == default
    assert handler_of() == default
    array = result(LARGE)
    for other in [np.empty(LARGE), array.copy(), array + 1, array.astype(int), np.concatenate([array, array])]:
        assert handler_of(other) == default


SIZES = [1, 4096, LEAST - 65 * 1024, LEAST - 1, LEAST, LARGE, 3 * MIB, 5 * MIB + 1, 16 * MIB, 40 * MIB]


@pytest.mark.parametrize("before", SIZES[4:])
@pytest.mark.parametrize("after", [0, *SIZES])
def test_resizing_in_place(before, after):
    array = result(before, 7)
    array.resize(after, refcheck=False)
    kept = min(before, after)
    assert (array[:kept] == 7).all()
    assert not array[kept:].any()
    array.fill(9)
    del array
    assert idle_bytes() <= (before + after) * 9 // 8
    assert idle_bytes() == 0 or after >= LEAST - 64 * 1024  # only large blocks are kept
    assert (result(after, 3) == 3).all()
    assert (result(before, 4) == 4).all()


@linux
def test_tracemalloc_sees_results_come_and_go():
    tracemalloc.start()
    try:
        for _ in range(2):
            before = tracemalloc.get_traced_memory()[0]
            array = result(8 * MIB)
            assert tracemalloc.get_traced_memory()[0] - before >= 8 * MIB
            del array
            assert tracemalloc.get_traced_memory()[0] - before < MIB
    finally:
        tracemalloc.stop()


# The store


@recycles
@pytest.mark.parametrize("nbytes", [LEAST, LARGE, 3 * MIB + 5, 5 * MIB, 33 * MIB, 40_000_000])
def test_memory_is_used_again(nbytes):
    array = result(nbytes, 1)
    address = array.ctypes.data
    assert address % LARGE == 0
    assert idle_bytes() == 0
    del array
    assert nbytes <= idle_bytes() <= nbytes * 9 // 8
    array = result(nbytes, 2)
    assert array.ctypes.data == address
    assert idle_bytes() == 0
    assert (array == 2).all()


@recycles
@pytest.mark.parametrize(
    ("nbytes", "fits"),
    [(16 * MIB, True), (16 * MIB + 1, False), (15 * MIB, True), (14 * MIB, False), (LARGE, False), (LEAST - 1, False)],
    ids=["equal", "larger", "a little smaller", "too small", "much smaller", "not large"],
)
def test_which_results_a_block_is_for(nbytes, fits):
    result(16 * MIB)
    array = result(nbytes)
    assert idle_bytes() == (0 if fits else 16 * MIB)
    assert (array == 1).all()


@recycles
def test_the_best_block_is_taken_and_of_equals_the_youngest():
    arrays = [result(n * MIB) for n in (34, 32, 32, 36)]
    addresses = [array.ctypes.data for array in arrays]
    while arrays:
        del arrays[0]
    assert [result(32 * MIB).ctypes.data for _ in range(2)] == [addresses[2]] * 2
    held = [result(32 * MIB) for _ in range(3)]
    assert [array.ctypes.data for array in held] == [addresses[2], addresses[1], addresses[0]]


@recycles
def test_the_limit_holds_and_the_oldest_go():
    larger = result(22 * MIB)
    bcast.set_idle_limit(20 * MIB)
    arrays = [result(n * MIB) for n in (4, 6, 8, 10)]
    for expected in (4, 10, 18, 18):  # 4 + 6 + 8 + 10 is too much by the first two
        del arrays[0]
        assert idle_bytes() == expected * MIB
    del larger
    assert idle_bytes() == 18 * MIB  # what never fits displaces nothing
    assert bcast.set_idle_limit(10 * MIB) == 20 * MIB
    assert idle_bytes() == 10 * MIB
    assert bcast.set_idle_limit(0) == 10 * MIB
    assert idle_bytes() == 0
    result(4 * MIB)
    assert idle_bytes() == 0


@recycles
def test_results_beyond_the_limit_are_as_any_array():
    bcast.set_idle_limit(20 * MIB)
    assert handler_of(new((20 * MIB,))) == "bcast"
    assert handler_of(new((20 * MIB - 1,))) == "bcast"
    assert handler_of(new((20 * MIB + 1,))) == handler_of()
    bcast.set_idle_limit(0)
    assert handler_of(new((LARGE,))) == handler_of()


@recycles
def test_more_results_than_there_may_be_blocks():
    arrays = [new((LARGE,)) for _ in range(17_000)]
    assert handler_of(arrays[0]) == "bcast"
    assert handler_of(arrays[-1]) == handler_of()
    arrays[-1].fill(1)
    del arrays
    assert handler_of(new((LARGE,))) == "bcast"


HOLDS_AND_DROPS = """
def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE") >> 20

before = resident()
array = bcast.broadcast(np.uint8(1), (300 << 20,))
held = resident() - before
del array
print(held, resident() - before)
"""


@linux
@pytest.mark.parametrize(("limit", "most"), [(0, 10), (100, 10), (400, 310)])
def test_a_process_keeps_no_more_than_the_limit(limit, most):
    held, kept = map(int, run(HOLDS_AND_DROPS, BCAST_IDLE_BYTES=str(limit * MIB)).split())
    assert held >= 298  # the system counts some pages late
    assert kept <= most


def lent():
    """The memory in MiB that the system may reclaim from this process; it counts some pages late."""
    rollup = Path("/proc/self/smaps_rollup").read_text()
    return pytest.approx(int(rollup.partition("LazyFree:")[2].split()[0]) / 1024, abs=1)


@linux
def test_only_the_youngest_idle_memory_is_not_lent():
    arrays = [result(8 * MIB) for _ in range(6)]
    for expected in (0, 0, 0, 0, 8, 16):
        del arrays[0]
        assert lent() == expected
    arrays = [result(8 * MIB, i) for i in range(6)]
    assert lent() == 0
    assert all((array == i).all() for i, array in enumerate(arrays))


@linux
def test_memory_that_the_system_has_taken_comes_back():
    array = result(40 * MIB, 1)
    address = array.ctypes.data
    del array
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    if madvise(address, 40 * MIB, 21):  # MADV_PAGEOUT: as if memory were short
        pytest.skip("the kernel takes no pages on request")
    left = lent()
    array = new((40 * MIB,))
    assert array.ctypes.data == address
    assert left == 0
    assert not array.any()
    array.fill(3)
    assert (array == 3).all()


SHORT_OF_ADDRESSES = """
import resource
from bcast._runtime.arrays import result_array

def new(mib):
    return result_array(None, np.empty(0, np.uint8), (mib << 20,), "shape")

new(600)
assert bcast.memory_info().idle == 600 << 20
with open("/proc/self/statm") as statm:
    mapped = int(statm.read().split()[0]) * os.sysconf("SC_PAGESIZE")
resource.setrlimit(resource.RLIMIT_AS, (mapped + (300 << 20),) * 2)
new(800)
print(bcast.memory_info().idle >> 20)
try:
    new(1000)
except MemoryError as error:
    print(error, np._core.multiarray.get_handler_name())
"""


@linux
def test_idle_memory_is_given_up_before_an_allocation_fails():
    kept, error = run(SHORT_OF_ADDRESSES, BCAST_IDLE_BYTES=str(1 << 30)).splitlines()
    assert kept == "800"
    assert error.startswith("Unable to allocate 1000. MiB for an array with shape (1048576000,)")
    assert error.endswith(" default_allocator")


def test_a_failed_allocation_changes_nothing():
    default = handler_of()
    array = result(LARGE, 3)
    for nbytes, size in [(1 << 62, r"4\.00"), (sys.maxsize, r"8\.00")]:
        with pytest.raises(MemoryError, match=rf"^Unable to allocate {size} EiB for an array with shape"):
            bcast.broadcast(np.uint8(1), (nbytes,))
        with pytest.raises(MemoryError):
            array.resize(nbytes, refcheck=False)
    assert handler_of() == default
    assert array.shape == (LARGE,)
    assert (array == 3).all()


# Threads, processes, other handlers


FORKS = """
def idle_bytes():
    return bcast.memory_info().idle

def result(value):
    return bcast.broadcast(np.uint8(value), (40_000_000,))

arrays = [result(value) for value in range(3)]
del arrays[2]
idle = idle_bytes()
child = os.fork()
if child == 0:
    code = 1
    try:
        assert idle_bytes() == 0
        assert (arrays[0] == 0).all()
        arrays[0].fill(9)
        assert (result(7) == 7).all()
        assert idle_bytes() == idle
        del arrays[0]
        assert idle_bytes() == 2 * idle
        new = [result(8) for _ in range(3)]
        assert (arrays[0] == 1).all()
        assert all((array == 8).all() for array in new)
        code = 0
    finally:
        os._exit(code)
new = result(5)
assert idle_bytes() == 0
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 0
assert (new == 5).all()
assert (arrays[0] == 0).all()
assert (arrays[1] == 1).all()
print(idle)
"""


@forks
def test_after_a_fork_both_processes_have_their_own():
    assert int(run(FORKS, BCAST_IDLE_BYTES=str(1 << 30))) == 20 * LARGE


SURVIVES = """
import atexit, builtins
array = bcast.broadcast(np.uint8(1), (40_000_000,))
builtins.survivor = array.reshape(5, -1)
atexit.register(array.fill, 2)
class Late:
    def __init__(self):
        self.array = bcast.broadcast(np.uint8(1), (4_000_000,))
    def __del__(self):
        self.array[:] = 3
builtins.late = Late()
del sys.modules["bcast._runtime.core"], sys.modules["bcast"], bcast
"""


def test_results_outlive_the_module():
    assert run(SURVIVES) == ""


class Handler(ctypes.Structure):
    """NumPy's PyDataMem_Handler, as far as is needed here."""

    _fields_ = (("name", ctypes.c_char * 127), ("rest", ctypes.c_char * 41))


@pytest.fixture
def the_users_own_handler():
    """Set a memory handler that is NumPy's own by another name."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    table = (ctypes.c_void_p * 306).from_address(pointer(np._core._multiarray_umath._ARRAY_API, None))
    set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(table[304])
    default = ctypes.PYFUNCTYPE(ctypes.py_object)(table[305])()
    handler = Handler.from_buffer_copy(Handler.from_address(pointer(default, b"mem_handler")))
    handler.name = b"the user's own"
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    name = ctypes.c_char_p(b"mem_handler")
    capsule = make(ctypes.addressof(handler), name, None)
    set_handler(capsule)
    yield "the user's own"
    set_handler(default)


def test_a_handler_of_the_users_own_is_respected(the_users_own_handler):
    array = result(4 * MIB)
    assert handler_of(array) == the_users_own_handler
    assert handler_of() == the_users_own_handler
    del array
    assert idle_bytes() == 0


# The limit and its variable


@pytest.mark.parametrize("nbytes", [0, True, np.int32(5), sys.maxsize, 2**100], ids=repr)
def test_the_idle_limit_is_set_and_returned(nbytes):
    assert bcast.set_idle_limit(nbytes) == 1024 * MIB
    assert bcast.set_idle_limit(1) == min(int(nbytes), sys.maxsize)


@pytest.mark.parametrize("nbytes", [-1, -(2**100), 1e9, "1", None], ids=repr)
def test_invalid_limits_are_refused(nbytes):
    refuse(lambda: bcast.set_idle_limit(nbytes), ValueError if isinstance(nbytes, int) else TypeError, "nbytes")
    assert bcast.set_idle_limit(0) == 1024 * MIB


@recycles
def test_idle_memory_is_reported_and_released():
    limit = bcast.memory_info().limit
    assert bcast.memory_info() == (0, 0, limit)
    arrays = [result(20 * MIB), result(20 * MIB), result(40 * MIB)]
    assert bcast.memory_info().idle == 0
    while arrays:
        del arrays[0]
    assert bcast.memory_info() == (80 * MIB, 60 * MIB, limit)  # the youngest 32 MiB are not lent
    bcast.release_memory()
    assert bcast.memory_info() == (0, 0, limit)
    result(20 * MIB)
    assert bcast.memory_info().idle == 20 * MIB


@recycles
def test_memory_that_stays_idle_is_returned():
    """Down to 64 MiB, a block a call, once it was idle for some seconds; time passes for the store alone."""
    arrays = [result(n * MIB) for n in (40, 20, 30, 10)]
    while arrays:
        del arrays[0]
    small = np.zeros(3)
    for _ in range(10):
        bcast.broadcast_to(small, (2, 3))
    assert idle_bytes() == 100 * MIB
    for expected in (60, 60):
        runtime.let_time_pass(6)
        bcast.broadcast_to(small, (2, 3))
        assert idle_bytes() == expected * MIB
    del small
    array = result(60 * MIB)
    del array
    assert idle_bytes() == 120 * MIB
    bcast.broadcast_to(1, (3,))
    assert idle_bytes() == 100 * MIB  # the three that are left are old, one of them at a time
    bcast.unbroadcast(np.ones((2, 3)), (3,))
    assert idle_bytes() == 70 * MIB
    bcast.tile([1], 3)
    assert idle_bytes() == 60 * MIB


RESIZED = """
import threading
sys.setswitchinterval(1e-6)
box, stop = [np.ones(9, "u1")], threading.Event()
wrong = []
def read():
    while not stop.is_set():
        if box[0][5] != 1:
            wrong.append(1)
thread = threading.Thread(target=read)
thread.start()
for _ in range(60):
    bcast.set_idle_limit(1 << 30)
    box[0] = bcast.broadcast_to(np.uint8(1), 32 << 20)
    bcast.set_idle_limit(0)
    box[0].{change}
stop.set()
thread.join()
print(len(wrong), bcast.memory_info().idle)
"""


@recycles
@pytest.mark.parametrize(
    "change", ["resize(40 << 20, refcheck=False)", "__setstate__((1, (9,), np.dtype('u1'), False, bytes([1] * 9)))"]
)
def test_no_other_thread_runs_while_an_array_points_to_memory_that_is_gone(change):
    assert run(RESIZED.format(change=change)) == "0 0\n"


UNDER_A_LIMIT = """
import resource
resource.setrlimit(resource.{name}, (512 << 20, 512 << 20))
import numpy as np, bcast
limit = bcast.memory_info().limit
row, most = np.arange(1000, dtype=np.uint8), 0
for size in (100, 60, 30, 10, 5, 2, 1) * 3:
    for _ in range(10):
        bcast.broadcast_to(row, (size * 1000, 1000))
        most = max(most, bcast.memory_info().idle)
print(limit, most)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems' limits are not those of all memory")
@pytest.mark.parametrize("name", ["RLIMIT_AS", "RLIMIT_DATA"])
def test_a_process_with_little_memory_keeps_little(name):
    limit, most = map(int, printed("-c", UNDER_A_LIMIT.format(name=name), BCAST_NUM_THREADS="1").split())
    assert limit == 64 * MIB
    assert 0 < most <= limit
