"""The families of cells: what each measures, where its cells are, and where its figures are published.

To find a cell, run `python -m benchmarks --list --only WORDS`, or search this folder for a part of its name.
"""

from argparse import Namespace
from collections.abc import Callable, Iterator
from typing import NamedTuple

from benchmarks import (
    arithmetic,
    chains,
    copies,
    gates,
    overheads,
    packages,
    processes,
    reductions,
    search,
    sums,
    threads,
    tuning,
    vectors,
)
from benchmarks.harness import Cell

__all__ = ["EVERYTHING", "FAMILIES", "OTHERS", "Family", "Other"]


class Family(NamedTuple):
    """Cells that are timed one by one, by competitors that take turns: the function yields them."""

    what: str
    cells: Callable[[Namespace], Iterator[Cell]]
    published: str


class Other(NamedTuple):
    """A measurement of another kind, whose function prints its own table."""

    what: str
    measure: Callable[[Namespace], None]
    published: str


def replaced_cells(options: Namespace) -> Iterator[Cell]:
    """Yield the functions that replace NumPy's, of all three cores."""
    yield from copies.replaced_cells(options)
    yield from sums.unrepeat_cells(options)
    yield from arithmetic.mode_cells(options)


FAMILIES = {
    "grid": Family("broadcasts from real programs, in five dtypes", copies.grid_cells, "results.md"),
    "random": Family("broadcasts of random shapes; --seed gives others", copies.random_cells, "results.md"),
    "scaling": Family("five patterns from 1 KB to 4 GB, on one thread to all", copies.scaling_cells, "results.md"),
    "use": Family("results that are kept until the next is made, or read at once", copies.use_cells, "results.md"),
    "replaced": Family("functions that NumPy has, or that it takes several calls for", replaced_cells, "results.md"),
    "strided": Family("strided data made contiguous", copies.strided_cells, "docs/design/copies.md"),
    "awake": Family("calls beside pools that are awake, without a rest", copies.awake_cells, "docs/design/threads.md"),
    "adjoint": Family("gradients summed by `unbroadcast`: speed and error", sums.adjoint_cells, "adjoint.md"),
    "products": Family("gradients with respect to scales: speed and error", sums.product_cells, "products.md"),
    "statistics": Family("sum, mean, var and std: speed and error", sums.statistic_cells, "docs/design/sums.md"),
    "exact": Family("sums that are rounded once", sums.exact_cells, "docs/design/sums.md"),
    "vectors": Family("products, norms and stacks of vectors of 2 to 4 items", vectors.vector_cells, "vectors.md"),
    "reductions": Family(
        "extremes, positions, truths and products along axes", reductions.reduction_cells, "reductions.md"
    ),
    "elementwise": Family(
        "functions of two operands, and `where`", arithmetic.elementwise_cells, "docs/design/elementwise.md"
    ),
    "chain": Family("pictures made ready for a network", arithmetic.chain_cells, "docs/design/elementwise.md"),
    "chain reductions": Family(
        "chains that end in a reduction, and lines of NumPy's", chains.chain_reduction_cells, "chains.md"
    ),
    "small": Family("each step of a small call, and each mode", overheads.small_call_cells, "docs/design/calls.md"),
    "packages": Family(
        "calls of other packages: before, patched, one line changed", packages.package_cells, "field.md"
    ),
    "lines": Family("lines of NumPy's by the length of the last axis", packages.line_cells, "lines.md"),
    "pictures": Family("lines of NumPy's and others' about pictures", packages.picture_cells, "lines.md"),
}
OTHERS = {
    "gates": Other("what the patch adds to calls that NumPy gets", gates.measure_gates, "docs/existing-code.md"),
    "memory": Other("the memory of large new results", overheads.measure_memory, "docs/design/memory.md"),
    "gil": Other("what releasing the GIL costs", threads.measure_gil, "docs/design/copies.md"),
    "ticks": Other("what a call leaves to other Python threads", threads.measure_ticks, "docs/design/threads.md"),
    "busy": Other("calls beside busy processes", threads.measure_busy, "docs/design/threads.md"),
    "apply": Other("`python -m bcast apply` on large files", processes.measure_apply, "docs/command-line.md"),
    "dask": Other("dask arrays on two worker processes", processes.measure_dask, "docs/dask.md"),
    "tuning": Other(
        "each number of `_runtime/tuning.h`, halved and doubled", tuning.measure_tuning, "src/bcast/_runtime/tuning.h"
    ),
    "search": Other("a search for slow calls: random functions and layouts", search.measure_search, "search.md"),
}
EVERYTHING: dict[str, Family | Other] = {**FAMILIES, **OTHERS}
