# Operands: how they lie along the axes of the result, scalars, and the array for the result.
#
# In: arrays and Python scalars, as the user passed them. Out: the operands of a MapPlan; or that a call is NumPy's.


cdef inline bint _are_same(cnp.dtype given, cnp.dtype dtype) noexcept:
    """Whether items are of the same dtype, but for the order of their bytes."""
    cdef int a = given.type_num, b = dtype.type_num
    return a == b or cnp.PyArray_EquivTypenums(a, b)


cdef inline bint _find_cast(cnp.dtype given, cnp.dtype dtype, Cast *cast) except -1:
    """Find the conversion from one dtype to another, NULL if they are the same; tell whether there is one."""
    if _are_same(given, dtype):
        cast[0] = NULL
        return True
    cast[0] = cast_of(target_number, given.type_num, dtype.type_num, bfloat16, True)
    return cast[0] != NULL


cdef inline bint _are_equal(const void *a, const void *b, int n) noexcept:
    """Whether arrays have the same lengths or strides."""
    cdef int i
    for i in range(n):
        if (<const Py_ssize_t *> a)[i] != (<const Py_ssize_t *> b)[i]:
            return False
    return True


cdef void _convert_repeated_bools(MapPlan *plan) noexcept:
    """Have bools whose bytes the loop compares made 0 or 1 where one stands for several items, or is the only one."""
    cdef Operand *operand
    cdef bint single = True, repeated
    cdef int k, i
    for i in range(plan.nest.rank):
        single = single and plan.nest.shape[i] == 1
    for k in range(plan.nest.n):
        operand = &plan.operands[k]
        if not plan.bools >> k & 1 or operand.array == NULL or operand.cast != NULL:
            continue
        repeated = single
        for i in range(plan.nest.rank):
            repeated = repeated or operand.strides[i] == 0 and plan.nest.shape[i] > 1
        if repeated:
            operand.cast = cast_of(target_number, cnp.NPY_BOOL, cnp.NPY_BOOL, bfloat16, True)


cdef bint _runs_backwards(const MapPlan *plan) noexcept:
    """Whether NumPy may hand the first operand to a loop by a step below 0: the innermost axis in memory has one."""
    cdef const Operand *operand = &plan.operands[0]
    cdef Py_ssize_t innermost = 0, step
    cdef int i
    for i in range(plan.nest.rank):
        step = operand.strides[i]
        if step and (innermost == 0 or llabs(step) < llabs(innermost)):
            innermost = step
    return innermost < 0 and operand.readable


cdef bint _has_sure_steps(const MapPlan *plan, bint repeating) noexcept:
    """Whether NumPy's loop sees adjacent items forwards, or one for all: of `b`, on all axes unless `repeating`."""
    cdef const Operand *operand
    cdef bint one = plan.operands[1].strides[plan.nest.rank - 1] == 0 and not repeating
    cdef int last = plan.nest.rank - 1, i, k
    for k in range(plan.nest.n):
        operand = &plan.operands[k]
        if operand.strides[last] and operand.strides[last] != operand.size:
            return False
        for i in range(last):
            if operand.strides[i] < 0 or (one and k == 1 and operand.strides[i]):
                return False
    return plan.nest.shape[0] > 1 or plan.nest.shape[last] > 1


cdef inline bint _has_items(const MapPlan *plan) noexcept:
    """Whether the result has axes, and items."""
    cdef int i
    for i in range(plan.nest.rank):
        if plan.nest.shape[i] == 0:
            return False
    return plan.nest.rank > 0


cdef bint _align(MapPlan *plan, a, b, int rule, axis) except -1:
    """Find the shape of the result, and how the operands lie in it; tell whether they fit under the rule."""
    plan.nest.rank = _rank_of(a) if rule else max(_rank_of(a), _rank_of(b))
    return _map_operand(plan, 0, a, 0, -1) and _map_operand(plan, 1, b, rule, axis)


cdef inline int _rank_of(operand) noexcept:
    return cnp.PyArray_NDIM(<cnp.ndarray> operand) if cnp.PyArray_CheckExact(operand) else 0


cdef inline bint _map_operand(MapPlan *plan, int k, operand, int rule, axis) except -1:
    """Find how an operand lies in the result; tell whether it fits there, or to the first one, under the rule.

    The first one makes the shape of the result, of a rank that is known; those of rule 0 stretch it.
    """
    cdef int rank = _rank_of(operand), start = plan.nest.rank - rank, i
    cdef Py_ssize_t *strides = plan.nest.stride[k]
    cdef Py_ssize_t *shape = plan.nest.shape
    cdef Py_ssize_t length
    plan.operands[k].strides = strides
    if start < 0 or rule == 1 and start:
        return False
    if rule == 3:
        if axis != -1:
            if type(axis) is not int or not 0 <= axis < plan.nest.rank:
                return False
            start = axis
        while rank and cnp.PyArray_DIM(<cnp.ndarray> operand, rank - 1) == 1:
            rank -= 1
        if start + rank > plan.nest.rank:
            return False
    for i in range(plan.nest.rank):
        strides[i] = 0
        if k == 0:
            shape[i] = 1
    for i in range(rank):
        length = cnp.PyArray_DIM(<cnp.ndarray> operand, i)
        if length != 1:
            strides[start + i] = cnp.PyArray_STRIDE(<cnp.ndarray> operand, i)
            if shape[start + i] == 1 and rule == 0:
                shape[start + i] = length
        if shape[start + i] != length and (length != 1 or rule == 1):
            return False
    return True


cdef inline bint _describe(MapPlan *plan, int k, value, cnp.dtype dtype, Cast cast, char *item) except -1:
    """Note what the plan needs to know of an array but for its strides, or store a Python scalar; tell if it can."""
    cdef Operand *operand = &plan.operands[k]
    operand.loop_size = dtype.itemsize
    operand.swapped = 0
    if not cnp.PyArray_CheckExact(value):
        operand.array, plan.nest.data[k], operand.size = NULL, item, operand.loop_size
        operand.cast, operand.readable = NULL, True
        return _store_scalar(value, dtype, item)
    operand.cast, operand.array = cast, <PyObject *> value
    plan.nest.data[k] = <char *> cnp.PyArray_DATA(<cnp.ndarray> value)
    operand.size = cnp.PyArray_ITEMSIZE(<cnp.ndarray> value)
    operand.readable = cnp.PyArray_ISBEHAVED_RO(<cnp.ndarray> value)
    if not operand.readable and not cnp.PyArray_ISNOTSWAPPED(<cnp.ndarray> value):
        operand.swapped = <int> operand.size // (2 if cnp.PyArray_ISCOMPLEX(<cnp.ndarray> value) else 1)
    return operand.swapped <= 8


cdef bint _store_scalar(value, cnp.dtype dtype, char *item) except -1:
    """Store a Python scalar as an item of a dtype; tell whether that is possible without an error or a warning."""
    cdef bint narrow = dtype.type_num == cnp.NPY_FLOAT16, signed = dtype.kind == c"i"
    cdef object kind = type(value)
    cdef int beyond = 0
    cdef long long whole = PyLong_AsLongLongAndOverflow(value, &beyond) if kind is int else 0
    cdef bint fits = False
    if beyond:
        return False
    if dtype.kind == c"u" or signed:    # bits beyond the item's are copies of the sign, which only signed ones have
        fits = kind is int and whole >> min(63, 8 * <int> dtype.itemsize - signed) == (whole >> 63 if signed else 0)
    elif dtype.kind == c"b":
        fits = kind is bool
    elif kind is complex:
        fits = dtype.type_num == cnp.NPY_CDOUBLE
    elif dtype.type_num == cnp.NPY_FLOAT or dtype.type_num == cnp.NPY_DOUBLE or narrow:
        fits = -(<long long> 1 << 53) <= whole <= <long long> 1 << 53 and not (
            isfinite(<double> value)
            and fabs(<double> value) > (65504 if narrow else FLT_MAX if dtype.type_num == cnp.NPY_FLOAT else DBL_MAX)
        )
    if fits:
        PyArray_Pack(<cnp.PyArray_Descr *> dtype, item, value)
    return fits


cdef object _fresh(MapPlan *plan, cnp.dtype dtype, int n):
    """A new array for the result, whose axes are in the order of the first n operands'; the nest's axes are, too."""
    cdef int[MAX_AXES] order
    cdef cnp.npy_intp[MAX_AXES] lengths
    cdef Operand *operand = &plan.operands[plan.nest.n - 1]
    cdef size_t step = dtype.itemsize
    cdef double size = step     # which is not too long for any shape
    cdef int i
    cdef bint same = find_numpys_order(&plan.nest, n, order)
    cdef cnp.ndarray array
    operand.strides = plan.nest.stride[plan.nest.n - 1]
    for i in range(plan.nest.rank - 1, -1, -1):
        lengths[i] = plan.nest.shape[order[i]]
        operand.strides[order[i]] = step
        step *= lengths[i]
        size *= lengths[i]
    if pays(<size_t> min(size, 1e18)):
        array = new_array(dtype, cnp.PyArray_IntTupleFromIntp(plan.nest.rank, lengths), "a, b")
    else:
        Py_INCREF(dtype)    # the call steals a reference
        array = PyArray_Empty(plan.nest.rank, lengths, dtype, 0)
    if not same:    # nobody else has seen the array
        for i in range(plan.nest.rank):
            cnp.PyArray_DIMS(array)[i] = plan.nest.shape[i]
            cnp.PyArray_STRIDES(array)[i] = operand.strides[i]
        cnp.PyArray_UpdateFlags(array, cnp.NPY_ARRAY_C_CONTIGUOUS | cnp.NPY_ARRAY_F_CONTIGUOUS)
    _describe(plan, plan.nest.n - 1, array, dtype, NULL, NULL)
    merge_axes(plan, NULL if same else order)
    return array


cdef bint _fits(MapPlan *plan, out, cnp.dtype dtype, int casting) except -1:
    """Whether the result can be written to the user's array, block by block; then it is described in the nest."""
    cdef int[MAX_AXES] order
    cdef Operand *operand = &plan.operands[plan.nest.n - 1]
    cdef Cast cast = NULL
    cdef cnp.ndarray array, each
    cdef cnp.dtype given
    cdef int k
    if not cnp.PyArray_CheckExact(out) or not _map_operand(plan, plan.nest.n - 1, out, 1, -1):
        return False
    array = out
    given = <cnp.dtype> cnp.PyArray_DESCR(array)
    if not cnp.PyArray_ISWRITEABLE(array) or given is not dtype and not (
        PyArray_CanCastTypeTo(<cnp.PyArray_Descr *> dtype, <cnp.PyArray_Descr *> given, casting)
        and _find_cast(dtype, given, &cast)
    ):
        return False
    if not _describe(plan, plan.nest.n - 1, array, dtype, cast, NULL) or (
        not cnp.PyArray_IS_C_CONTIGUOUS(array) and _overlaps_itself(plan, operand)
    ):
        return False
    plan.in_place = False
    for k in range(plan.nest.n - 1):
        if plan.operands[k].array == NULL or not overlap(<cnp.ndarray> plan.operands[k].array, array):
            continue
        each = <cnp.ndarray> plan.operands[k].array
        if (
            cnp.PyArray_DATA(each) != cnp.PyArray_DATA(array)
            or cnp.PyArray_ITEMSIZE(each) != operand.size
            or cnp.PyArray_NDIM(each) != plan.nest.rank
            # those of axes of length 1, too: NumPy writes to a copy if they differ
            or not _are_equal(cnp.PyArray_STRIDES(each), cnp.PyArray_STRIDES(array), plan.nest.rank)
            or not _are_equal(cnp.PyArray_DIMS(each), plan.nest.shape, plan.nest.rank)
        ):
            return False
        plan.in_place = True
    merge_axes(plan, NULL if find_numpys_order(&plan.nest, plan.nest.n, order) else order)
    return True


cdef bint _overlaps_itself(const MapPlan *plan, const Operand *operand) noexcept:
    """Whether items of an array may overlap: they do not where each stride is longer than what is within."""
    cdef Py_ssize_t reach, step, other
    cdef int i, j
    for i in range(plan.nest.rank):
        step = llabs(operand.strides[i])
        reach = operand.size
        for j in range(plan.nest.rank):
            other = llabs(operand.strides[j])
            if j != i and other <= step:
                reach += (plan.nest.shape[j] - 1) * other
        if plan.nest.shape[i] > 1 and step < reach:
            return True
    return False
