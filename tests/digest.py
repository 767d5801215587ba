"""Record the results of random calls, to compare two builds, targets or numbers of threads bit by bit.

    python tests/digest.py before.txt                         20,000 cases, one line each
    BCAST_TARGET=plain python tests/digest.py plain.txt --threads 64
    python tests/digest.py --compare before.txt plain.txt     the cases that differ; status 1 if there are any

The cases are those of `fuzz.py`. A line has the number of a case, the functions that it called, and a digest of all
results: values, dtypes, shapes, strides, flags, warnings, and errors with their texts. This file uses nothing private,
so one copy works with builds of different versions. Cases can only be compared if both versions of the fuzzer draw the
same ones.
"""

import argparse
import functools
import hashlib
import itertools
import random
import sys
import warnings
from pathlib import Path

import fuzz
import numpy as np
import threadpoolctl

import bcast

OF_THE_PROCESS = (
    "set_",
    "get_",
    "chain_memory",
    "memory_",
    "release_",
    "is_",
    "patch",
    "unpatch",
)  # what other calls change
NAMES = [name for name in sorted(bcast.__all__) if not name.startswith(OF_THE_PROCESS)]
COMPUTING_NANS = ("sum", "mean", "var", "std", "unbroadcast", "unrepeat")


class Digest:
    """A digest of what calls gave, in the order of the calls."""

    def __init__(self):
        self.hash = hashlib.sha256()

    def add(self, value, computes_nans=False):
        """Add a result: an array, a scalar, or a sequence of results."""
        if isinstance(value, (tuple, list)):
            self.note(type(value).__name__, len(value))
            for item in value:
                self.add(item)
        elif isinstance(value, (np.ndarray, np.generic)):
            array = np.asarray(value)
            self.note(type(value).__name__, array.dtype.str, array.dtype, array.shape, array.strides, array.flags.num)
            if computes_nans:
                array = without_payloads(array)
            if array.dtype.hasobject:
                self.note(array.tolist())
            elif array.dtype.char in "gG":  # items have bytes that mean nothing
                high = array.astype(np.complex128)
                self.hash.update(high.tobytes() + (array - high).astype(np.complex128).tobytes())
            else:
                self.hash.update(fuzz.raw(array).tobytes())
        elif callable(value):
            self.note("a function")
        else:
            self.note(value)

    def note(self, *facts):
        """Add facts by what they print."""
        self.hash.update(repr(facts).encode())

    def recording(self, function):
        """Return a function that calls another one, and notes what it gave, or raised, and its warnings."""

        @functools.wraps(function)
        def recorded(*args, **kwargs):
            self.note(function.__name__)
            with warnings.catch_warnings(record=True) as caught, np.errstate(all="warn"):
                warnings.simplefilter("always")
                try:
                    result = function(*args, **kwargs)
                except Exception as error:
                    self.note(type(error).__name__, str(error))
                    raise
                finally:
                    self.note([(warning.category.__name__, str(warning.message)) for warning in caught])
            self.add(result, function.__name__ in COMPUTING_NANS)
            return result

        return recorded


def without_payloads(items):
    """Give each NaN the same bits: those of a sum follow from the order in which the CPU meets its terms."""
    if items.dtype.kind not in "fc":
        return items
    items = items.copy()
    for part in (items.real, items.imag) if items.dtype.kind == "c" else (items,):
        part[np.isnan(part)] = np.nan
    return items


def case_digest(seed, number):
    """Run one case on this thread; return the name of its function, and the digest of its calls."""
    rng = random.Random(f"{seed} {number}")
    name = rng.choice(NAMES)
    digest = Digest()
    originals = {each: getattr(bcast, each) for each in NAMES}
    try:
        for each, function in originals.items():
            setattr(bcast, each, digest.recording(function))
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                fuzz.FUNCTIONS[name](rng)
            except AssertionError as error:
                digest.note("wrong", str(error))  # another build may be right
    finally:
        for each, function in originals.items():
            setattr(bcast, each, function)
    return name, digest.hash.hexdigest()[:20]


def write_digests(path, seed, count, threads):
    """Write a line for each case; its calls use a number of threads, for any number of CPUs."""
    with threadpoolctl.threadpool_limits(threads), path.open("w") as file:
        bcast.set_num_threads(threads)
        for number in range(count):
            print(number, *case_digest(seed, number), file=file)


def compare(first, second):
    """Print the cases that differ; return how many."""
    lines = [Path(path).read_text().splitlines() for path in (first, second)]
    differing = [pair for pair in itertools.zip_longest(*lines, fillvalue="none") if pair[0] != pair[1]]
    for one, other in differing:
        print(f"{one}  |  {other}")
    print(f"{len(differing)} of {max(map(len, lines))} cases differ", file=sys.stderr)
    return len(differing)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file", type=Path, nargs="?", help="the file to write")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20_000, help="how many cases; default: 20,000")
    parser.add_argument("--threads", type=int, default=2, help="how many threads calls may use; default: 2")
    parser.add_argument("--compare", nargs=2, metavar="FILE", help="two files to compare")
    options = parser.parse_args()
    if options.compare:
        return compare(*options.compare) > 0
    if options.file is None:
        parser.error("give a file to write, or --compare and two files")
    write_digests(options.file, options.seed, options.count, options.threads)
    return 0


if __name__ == "__main__":
    sys.exit(main())
