# cython: cdivision=True
"""The loop nest: the lengths of its axes, and each operand's strides along them.

Copies, reductions and element-wise functions all iterate over a nest. They share the code that simplifies it; each core
divides its work and runs its innermost loops differently. A stride of 0 means that an operand has a single item for a
whole axis: an input is repeated along it, an output is reduced. One description therefore serves all cores.

    a + b, of float64, a of shape (2, 3, 4), b of shape (3, 1)      sums of (5, 1, 6) over axis 0, of float64

        shape           2    3    4                                     shape           5    1    6
        stride of a    96   32    8                                     stride of x    48   48    8
        stride of b     0    8    0                                     stride of sum   0    8    8
        stride of out  96   32    8

Planners simplify a nest in these steps:

* `drop_unit_axes` removes axes of length 1. The sums keep axes of 5 and 6.
* `flip_negative_axes` makes an operand's negative strides positive: all operands start at the other end of the axis.
* `sort_axes`, `find_numpys_order` and `put_in_order` move the axis with the shortest strides innermost. Copies and
  reductions sort by the strides of the data, element-wise functions as NumPy's iterator does.
* `coalesce_axes` merges two adjacent axes if each operand's outer stride is its inner stride times the inner length. In
  ``a + b``, axes 0 and 1 cannot merge: `a` and `out` meet the condition (96 = 3 * 32), `b` does not (0 != 3 * 8). If
  `b` had shape (1, 1), all three axes would merge into one of 24 (0 = 3 * 0 = 4 * 0): one loop of 24 instead of six
  of 4.

Nothing here allocates, raises or runs Python.
"""

from libc.stdlib cimport llabs


cdef void keep_rank(Nest *nest, int least) noexcept nogil:
    """Add outermost axes of length 1 until the nest has `least` axes."""
    cdef int missing = least - nest.rank, axis, k
    if missing <= 0:
        return
    for axis in range(nest.rank - 1, -1, -1):
        copy_axis(nest, axis + missing, axis)
    for axis in range(missing):
        nest.shape[axis] = 1
        for k in range(nest.n):
            nest.stride[k][axis] = 0
    nest.rank = least


cdef void flip_negative_axes(Nest *nest, int by) noexcept nogil:
    """Flip each axis along which operand `by` has a negative stride."""
    cdef int axis, k
    for axis in range(nest.rank):
        if nest.stride[by][axis] >= 0:
            continue
        for k in range(nest.n):
            nest.data[k] += (nest.shape[axis] - 1) * nest.stride[k][axis]
            nest.stride[k][axis] = -nest.stride[k][axis]


cdef void sort_axes(Nest *nest, int by) noexcept nogil:
    """Order the axes by the strides of an operand, the longest outermost; axes of stride 0 come before all others.

    Axes of equal strides keep their order.
    """
    cdef int i, axis
    for i in range(1, nest.rank):
        axis = i
        while axis > 0 and _belongs_outside(nest.stride[by][axis], nest.stride[by][axis - 1]):
            swap_axes(nest, axis - 1, axis)
            axis -= 1


cdef inline bint _belongs_outside(Py_ssize_t stride, Py_ssize_t before) noexcept nogil:
    """Whether an axis of one stride belongs outside of an axis of another."""
    return before != 0 and (stride == 0 or llabs(stride) > llabs(before))


cdef bint find_numpys_order(const Nest *nest, int n, int *order) noexcept nogil:
    """List the axes as NumPy iterates over the first `n` operands, outermost first; return whether that is their order.

    The axis with the shorter strides is within. Where operands disagree, or say nothing, the order of the axes counts.
    """
    cdef int axis, place, i
    cdef int vote
    cdef bint is_sorted = True

    for axis in range(nest.rank - 1, -1, -1):   # insert each one among those that are within
        place = axis
        for i in range(axis + 1, nest.rank):
            vote = _vote(nest, n, axis, order[i])
            if vote == STAYS_OUTSIDE:
                break
            if vote == GOES_WITHIN:
                place = i
        for i in range(axis, place):
            order[i] = order[i + 1]
        order[place] = axis
        is_sorted = is_sorted and place == axis
    return is_sorted


cdef enum:
    STAYS_OUTSIDE
    GOES_WITHIN
    ABSTAINS


cdef inline int _vote(const Nest *nest, int n, int axis, int other) noexcept nogil:
    """Whether an axis stays outside another one, by the operands' strides: a single vote for its place is enough."""
    cdef int vote = ABSTAINS, k
    cdef Py_ssize_t own, others
    for k in range(n):
        own = llabs(nest.stride[k][axis])
        others = llabs(nest.stride[k][other])
        if own == 0 or others == 0:
            continue
        if others <= own:
            return STAYS_OUTSIDE
        vote = GOES_WITHIN
    return vote


cdef void put_in_order(Nest *nest, const int *order) noexcept nogil:
    """Permute the axes: `order` lists their numbers."""
    cdef int k
    _put_row_in_order(nest.shape, nest.rank, order)
    for k in range(nest.n):
        _put_row_in_order(nest.stride[k], nest.rank, order)


cdef inline void _put_row_in_order(Py_ssize_t *row, int rank, const int *order) noexcept nogil:
    """Permute lengths or strides."""
    cdef Py_ssize_t[NEST_AXES] given
    cdef int axis
    for axis in range(rank):
        given[axis] = row[axis]
    for axis in range(rank):
        row[axis] = given[order[axis]]


def small_nest(shape, strides, steps, by=0):
    """Make a nest without data and apply some of the steps above, for tests; return its shape, strides and first items.

    `strides` has a tuple for each operand, in bytes. First items are offsets in bytes from the original ones.
    """
    cdef Nest nest
    cdef int k
    if not len(shape) <= MAX_AXES or not 1 <= len(strides) <= MAX_OPERANDS:
        raise ValueError(f"`shape` expected at most {MAX_AXES} axes of {MAX_OPERANDS} operands, got {shape}, {strides}")
    _fill(&nest, shape, strides)
    for step in steps:
        _take_step(&nest, step, by)

    found = []
    begins = []
    for k in range(nest.n):
        found.append(_row_of(nest.stride[k], nest.rank))
        begins.append(<Py_ssize_t> nest.data[k])
    return _row_of(nest.shape, nest.rank), found, begins


cdef int _fill(Nest *nest, shape, strides) except -1:
    """Make a nest of operands whose first items are at address 0."""
    cdef int axis, k
    nest.rank, nest.n = len(shape), len(strides)
    for axis in range(nest.rank):
        nest.shape[axis] = shape[axis]
    for k in range(nest.n):
        nest.data[k] = NULL
        for axis in range(nest.rank):
            nest.stride[k][axis] = strides[k][axis]
    return 0


cdef int _take_step(Nest *nest, str step, int by) except -1:
    """Apply a step to a nest, by the step's name."""
    cdef int[NEST_AXES] order
    if step == "drop":
        drop_unit_axes(nest)
    elif step == "flip":
        flip_negative_axes(nest, by)
    elif step == "sort":
        sort_axes(nest, by)
    elif step == "numpy":
        find_numpys_order(nest, nest.n, order)
        put_in_order(nest, order)
    elif step == "coalesce":
        coalesce_axes(nest)
    elif step == "two":
        keep_rank(nest, 2)
    else:
        raise ValueError(f"`steps` expected names of steps, got {step!r}")
    return 0


cdef tuple _row_of(const Py_ssize_t *row, int rank):
    """Lengths, or strides, as a tuple."""
    cdef int axis
    items = []
    for axis in range(rank):
        items.append(row[axis])
    return tuple(items)
