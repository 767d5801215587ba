"""The competitors: how each is found, given its number of threads, and called; and the limits of the machine.

A cell has the call of each competitor as text, or as a function that makes the call. Its name there is one of `PEERS`;
what follows a comma says how it was called, as in "torch, output_size". A competitor that is not installed is absent
from tables, and no peer is imported before it is timed.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bcast
from bcast._benchmark import timing
from benchmarks.numba_loops import readers

Call = Callable[[], Any]
Names = Mapping[str, Any]  # the arrays and numbers that a call names; what it writes again is `out`
Way = str | Callable[..., Call | None]  # a call as text, or what makes it of these names; None if it cannot be done

LIMIT = "limit"  # not a library: the least time in which as many bytes can be moved
OWN = ("bcast", "numpy", LIMIT)  # not peers
TRIAL_SECONDS = 0.02  # to find the fastest way to move bytes


@dataclass(frozen=True)
class Peer:
    """A library that is timed.

    Attributes
    ----------
    modules : tuple of str
        Which must be installed, and what calls name; the first one has the version.
    set_up : function
        Is given the number of threads before the library makes a call.
    makes_its_own : bool
        Whether its results are new arrays even where the others write into `out`.
    """

    modules: tuple[str, ...]
    set_up: Callable[[int], object] = lambda threads: None  # noqa: ARG005
    makes_its_own: bool = False


def set_up_jax(_threads: int) -> None:
    """Keep float64 what it is. The number of threads is what `bound` lets JAX find when it is imported."""
    import_module("jax").config.update("jax_enable_x64", True)


def set_up_numba(threads: int) -> None:
    """Set the number of numba's threads."""
    numba = import_module("numba")
    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))


PEERS = {
    "bcast": Peer(("bcast",), bcast.set_num_threads),
    "numpy": Peer(("numpy",)),  # has one thread
    "einsum": Peer(("numpy",)),
    "bincount": Peer(("numpy",)),
    "torch": Peer(("torch",), lambda threads: import_module("torch").set_num_threads(threads)),
    "jax": Peer(("jax",), set_up_jax, makes_its_own=True),
    "onnxruntime": Peer(("onnxruntime", "onnx")),  # each session has its number of threads
    "openvino": Peer(("openvino",)),  # each model has it
    "opencv": Peer(("cv2",), lambda threads: import_module("cv2").setNumThreads(threads)),
    "opencv blobs": Peer(("cv2",), lambda threads: import_module("cv2").setNumThreads(threads), makes_its_own=True),
    "albucore": Peer(("albucore", "cv2"), makes_its_own=True),
    "numba": Peer(("numba",), set_up_numba),
    "numexpr": Peer(("numexpr",), lambda threads: import_module("numexpr").set_num_threads(threads)),
    "bottleneck": Peer(("bottleneck",)),  # has one thread
    "scipy": Peer(("scipy", "scipy.spatial.distance")),  # has one thread
    "pyarrow": Peer(("pyarrow", "pyarrow.compute")),
    LIMIT: Peer(()),
}


def peer(competitor: str) -> Peer:
    """Return the library behind a competitor's name."""
    return PEERS[competitor.partition(",")[0]]


def installed(competitor: str) -> bool:
    """Return whether all that a competitor needs is installed, without importing it."""
    return all(find_spec(module.partition(".")[0]) for module in peer(competitor).modules)


def version(competitor: str) -> str:
    """Return a competitor's name and version."""
    return f"{competitor} {import_module(peer(competitor).modules[0]).__version__.partition('-')[0]}"


def call_of(competitor: str, way: Way, names: Names) -> Call | None:
    """Make a competitor's call.

    What is needed only once is done here, outside of the time that counts: torch and jax get the arrays in their own
    type, and the text for jax is jitted as a function of them.
    """
    if not isinstance(way, str):
        return way(**names)
    library = competitor.partition(",")[0]
    known = {"np": np, "bcast": bcast, **names}
    known |= {module.partition(".")[0]: import_module(module) for module in reversed(peer(competitor).modules)}
    arrays = {name: value for name, value in names.items() if isinstance(value, np.ndarray)}

    if library == "torch":
        known |= {name: known["torch"].from_numpy(value) for name, value in arrays.items()}
    if library == "jax":
        jax = known["jax"]
        values = [jax.numpy.asarray(value) for value in arrays.values()]
        jitted = jax.jit(eval(f"lambda {', '.join(arrays)}: {way}", known))
        return lambda: jitted(*values).block_until_ready()
    call: Call = eval(f"lambda: {way}", known)
    return call


def cpus() -> int:
    """Return how many CPUs this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def bound(threads: int) -> Iterator[None]:
    """Limit the process to that many CPUs, where the system can: JAX has no other switch, and reads it on import."""
    before = os.environ.get("NPROC")  # JAX reads this variable, too
    mask = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()

    os.environ["NPROC"] = str(threads)
    if threads < len(mask):
        os.sched_setaffinity(0, sorted(mask)[:threads])
    try:
        yield
    finally:
        if threads < len(mask):
            os.sched_setaffinity(0, mask)
        os.environ.pop("NPROC", None)
        if before is not None:
            os.environ["NPROC"] = before


# The limits: a write, and a read, of as many bytes as a cell moves.


def fastest_fill(nbytes: int, threads: int) -> Call:
    """Return the fastest way to write a number of bytes of warm memory, found by a short trial."""
    block, one = np.ones(nbytes, np.uint8), np.ones((), np.uint8)

    ways: list[Call] = [partial(block.fill, 1)]  # of zeros, writing past the caches may be twice as fast
    if threads > 1:
        ways.append(in_pieces(lambda piece: piece.fill(1), block, threads))
    ways.append(lambda: bcast.broadcast(one, block.shape, out=block))  # past the caches if that is faster
    return fastest(ways)


def fastest_read(nbytes: int, threads: int) -> Call:
    """Return the fastest way to read a number of bytes, found by a short trial."""
    words = np.ones(-(-nbytes // 8), np.uint64)

    ways: list[Call] = [partial(np.add.reduce, words)]
    if threads > 1:
        ways.append(in_pieces(np.add.reduce, words, threads))
    if installed("numba"):
        set_up_numba(threads)
        alone, together = readers()
        ways.append(partial(alone, words))
        if threads > 1:
            ways.append(partial(together, words, threads))
    return fastest(ways)


def fastest(ways: list[Call]) -> Call:
    """Return the fastest of some calls; the first call of each is not timed, as it may compile."""
    for way in ways:
        way()
    times = timing.measure({str(number): way for number, way in enumerate(ways)}, TRIAL_SECONDS, warming=2e-3)
    return ways[int(min(times, key=lambda number: min(times[number])))]


def in_pieces(work: Callable[[NDArray[Any]], Any], block: NDArray[Any], threads: int) -> Call:
    """Work on a piece of a block in each thread: NumPy releases the GIL."""
    own, *others = np.array_split(block, threads)
    pool = pool_of(threads - 1)

    def call() -> None:
        running = [pool.submit(work, piece) for piece in others]
        work(own)
        for piece in running:
            piece.result()

    return call


@cache
def pool_of(threads: int) -> ThreadPoolExecutor:
    """Return the pool of a number of threads, the same one each time."""
    return ThreadPoolExecutor(threads)
