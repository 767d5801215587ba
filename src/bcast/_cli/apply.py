"""Files broadcast, tiled or repeated. In: names and options. Out: a file, written block by block."""

import sys
import warnings
from argparse import Namespace
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from bcast._api.converted import convert_onto, follows_values, materialise, prepared
from bcast._api.copies import counts_along, split
from bcast._cli.blocks import blocks, refit, units
from bcast._cli.npy_files import NpyInput, NpyOutput
from bcast._cli.streams import warn
from bcast._rules.alignment import SHAPE, Alignment, align_shapes
from bcast._rules.arguments import Shape, dtype_argument, shape_argument, show

BLOCK_BYTES = 16 * 2**20  # a block of output: large beside the cost of a call, small beside a machine's memory

Check = Callable[[], object]


def write(source: str, target: str, options: Namespace, check: Check) -> tuple[Shape, np.dtype[Any]]:
    """Write what the options ask for, with a `check` before each block; return the shape and dtype of the result."""
    data = NpyInput(source)
    own = data.array.shape
    if options.command == "apply":
        rules = {name: getattr(options, name) for name in ("axes_mapping", "mode", "axis", "broadcast_axes")}
        shape = shape_argument("shape", options.shape)
        alignment = align_shapes(own, shape, **rules, role=SHAPE)
        shape = alignment.shape
    elif options.command == "tile":
        counts = (1,) * (len(own) - len(options.reps)) + options.reps
        alignment, shape = _split("reps", (1,) * (len(counts) - len(own)) + own, counts)
    elif options.axis is None:
        if len(options.repeats) != 1:
            raise ValueError(f"`repeats` expected one number without `axis`, got {show(options.repeats)}")
        alignment, shape = _split("repeats", (*own, 1), (1,) * len(own) + options.repeats)
        shape = (prod(shape),)
    else:
        own = own or (1,)  # as in NumPy, a scalar has an axis here
        alignment, shape = _split("repeats", own, tuple(counts_along(options.repeats, options.axis, own, True)))
    return shape, _write(data, target, alignment, shape, options, check)


def _split(name: str, shape: Shape, counts: Shape) -> tuple[Alignment, Shape]:
    """Return the alignment of an output, with each axis of data of `shape` split in two; and its shape in the file."""
    if min(counts, default=0) < 0:
        raise ValueError(f"`{name}` expected counts of 0 or more, got {min(counts)}")
    whole = tuple([length * count for length, count in zip(shape, counts, strict=True)])
    return split(shape, counts, name == "reps"), shape_argument(name, whole)


def _write(data: NpyInput, target: str, alignment: Alignment, shape: Shape, options: Namespace, check: Check) -> Any:
    """Write an output of `shape`, which has the axes of the alignment, or some of them joined; return its dtype."""
    dtype = options.dtype
    if dtype is not None and follows_values(data.array.dtype, dtype_argument(dtype)):
        raise ValueError(f"`dtype` expected a dtype with a unit or length, got {dtype}")
    _, wanted = prepared(data.array, alignment.shape, None, dtype, options.casting)
    if wanted.hasobject:
        raise TypeError(f"`dtype` expected a dtype that .npy files store without pickling, got {wanted}")
    output = NpyOutput(alignment.shape, wanted, shape)
    nbytes = prod(shape) * wanted.itemsize
    if nbytes > sys.maxsize // 2:  # more than any disk has, yet adding the header's size cannot overflow
        raise ValueError(f"`shape` expected an output of at most {sys.maxsize // 2} bytes, got {nbytes} bytes")
    if not nbytes:  # there are shapes without items that no array can have
        materialise(data.array, alignment, alignment.shape, None, "shape", wanted, "unsafe")
    with warnings.catch_warnings(action="default"):
        warnings.showwarning = lambda message, *_, **__: warn(f"warning: {message}")
        with output.written(target, options.clobber):
            if nbytes:
                _fill(data, output, alignment, check)
            data.array = np.empty(0)  # Windows replaces no file that is mapped
            check()
    return wanted


def _fill(data: NpyInput, output: NpyOutput, alignment: Alignment, check: Check) -> None:
    """Broadcast the data block by block."""
    items = max(1, BLOCK_BYTES // output.dtype.itemsize)
    wanted = refit(data.unit(items), data.array.shape, alignment.source, 1)
    lengths = units(alignment.shape, wanted, items)
    read = None
    for index in blocks(alignment, lengths):
        check()
        place = refit(index, alignment.source, data.array.shape, slice(0, 1))
        if place != read:
            part = data.read(place)
            read = place
        block = output.block(index)
        source = [min(pair) for pair in zip(block.shape, alignment.source, strict=True)]
        convert_onto(part.reshape(source), Alignment(block.shape, tuple(source)), block, output.dtype, True)
        output.write(index, block)
