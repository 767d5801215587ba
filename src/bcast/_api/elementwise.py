# cython: auto_pickle=False
"""`elementwise`, `chain` and `where`. In: functions and operands, which broadcast under a rule. Out: their result.

Ufuncs of numbers run by blocks (`_elementwise.pyx`). All other calls go to the function itself, which broadcasts by
NumPy's rule. Other rules align the second operand with the first, and reshape it before that call.
"""

from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np
from numpy import generic, ndarray
from numpy.typing import ArrayLike

from bcast._api.chains import calls
from bcast._api.chains.folds import Fold, fold_of, is_fold
from bcast._api.converted import (
    as_array,
    as_base,
    as_operand,
    casting_number,
    into_tensor,
    is_handed_on,
    is_of_package,
    is_tensor,
    overrides,
    prepared,
)
from bcast._api.saturated import saturated
from bcast._api.unfit import name_of, unfit_function, unfit_ufunc
from bcast._apply.ufuncs import saturates
from bcast._elementwise import (
    NamedFunction,
    apply,
    choose,
    compute,
    compute_one,
    operand_shape,
    pass_on,
    report_kinds,
    run_steps,
    with_plain_bools,
    with_plain_bytes,
)
from bcast._rules.alignment import expect_default_axis, merge, pdpd, right_aligned, rule_of
from bcast._rules.arguments import CASTINGS, Shape, brief, dtype_argument, integer, mode_of, show
from bcast._rules.types import Casting, ChainCasting, DType, ElementwiseMode
from bcast._runtime.arrays import (
    are_alike,
    convert_into,
    dtype_of,
    is_binary,
    is_masked,
    refuse_repeated,
    reshaped,
    shape_of,
)
from bcast._runtime.errors import quietly

MODES = NUMPY, NONE, UNIDIRECTIONAL, PDPD = ("numpy", "none", "unidirectional", "pdpd")
UFUNC = np.ufunc
MAPPED = np.memmap
NUMPYS_WHERE = np.where  # even if it is replaced
SCALARS = (bool, int, float, complex)
CLIP, ROUND, AROUND = np.clip, np.round, np.around  # these are not ufuncs
BOOL = np.dtype(bool)
SAME_KIND: Casting = "same_kind"
NUMBER_OF_SAME_KIND = CASTINGS.index(SAME_KIND)
UNSAFE = CASTINGS.index("unsafe")
SATURATE = len(CASTINGS)
CHAIN_CASTINGS = CASTINGS + ("saturate",)
NO_VALUE: Any = np._NoValue

STATISTICS = "bcast._api.statistics"  # not a compiled module


def elementwise(
    ufunc: Callable[..., Any],
    a: ArrayLike,
    b: Any = NO_VALUE,
    /,
    *,
    mode: ElementwiseMode | None = None,
    axis: int = -1,
    out: Any = None,
    dtype: DType = None,
    casting: Casting = "same_kind",
    where: Any = True,
) -> Any:
    """Apply a binary function to `a` and `b`, which broadcast under the rule of `mode`.

    Parameters
    ----------
    ufunc : numpy.ufunc or callable
        A ufunc of two operands, such as `numpy.add`, or a function of two arrays that broadcasts as ufuncs do.
    a, b : array_like
        The operands, of any kind that `broadcast` accepts. Subclasses, and other objects that override NumPy's
        functions, are passed on unchanged.
    mode : {'numpy', 'none', 'unidirectional', 'pdpd'}, optional
        The rule for shapes. The default is 'pdpd' if `axis` is given, and otherwise 'numpy':

        ``'numpy'``
            Shapes are aligned on the right, and axes of length 1 stretch in both operands. This is also ONNX's
            multidirectional rule.
        ``'none'``
            `a` and `b` must have the same shape.
        ``'unidirectional'``
            Shapes are aligned on the right. Axes of length 1 stretch in `b` only, so the result has `a`'s shape.
        ``'pdpd'``
            `b`, without its trailing axes of length 1, is aligned with `a` starting at `axis`. Axes of length 1 stretch
            in `b` only, so the result has `a`'s shape.
    axis : int, optional
        In mode 'pdpd', which it implies, the axis of `a` at which `b` starts. The default, -1, means
        ``a.ndim - b.ndim``.
    out : ndarray or tuple of ndarray, optional
        The array to write the result into, of exactly the result's shape. It may be an operand or overlap one; the
        result is as if the operands had been copied first.
    dtype, casting
        The dtype of the computation and the result, and the allowed conversions, as in ufuncs.
    where : array_like of bool, optional
        The positions to compute, as in ufuncs; at other positions, `out` stays unchanged. It must broadcast to the
        result's shape.

    Returns
    -------
    ndarray or scalar
        The result of the function. A ufunc returns a scalar if neither operand has axes.

    Raises
    ------
    ValueError, numpy.exceptions.AxisError, TypeError
        As in `broadcast`, and if `ufunc` is not a binary function. Exceptions of the function pass through.

    Notes
    -----
    The rules come from the element-wise operations of OpenVINO and ONNX. `add`, `multiply` and so on are this function
    for one ufunc each. Results, dtypes, the memory order of a new result, warnings and exceptions are the same as the
    ufunc's: bcast calls the ufunc's own loop on blocks of a few thousand items, which it broadcasts and converts in the
    fastest cache, on several threads. If both operands are NaN, the result may be either of them.

    Other calls go to the function itself: functions that are not ufuncs, objects, strings and dates, integer powers,
    subclasses except `numpy.memmap`, calls with `where`, and an `out` that partly overlaps an operand. If `b` needs
    another shape, the function gets a view of it. Objects that override NumPy are passed on only in mode 'numpy'.
    Ufuncs get Python scalars unchanged; other functions get them as arrays without axes.

    If `numpy.errstate` turns a floating-point error into an exception, or the warning itself runs out of memory, `out`
    has already been written, as with the ufunc itself.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> image = np.zeros((2, 3, 2, 2))  # NCHW
    >>> bias = np.array([1.0, 2.0, 3.0])
    >>> bcast.elementwise(np.add, image, bias, mode="pdpd", axis=1)[0].tolist()
    [[[1.0, 1.0], [1.0, 1.0]], [[2.0, 2.0], [2.0, 2.0]], [[3.0, 3.0], [3.0, 3.0]]]
    >>> bcast.elementwise(np.multiply, [1, 2], [[3], [4]])
    array([[3, 6],
           [4, 8]])
    """
    # Clearer whole: first the usual small call, without an object; then a line for each argument.
    is_bare = mode is None and dtype is None and casting is SAME_KIND and where is True
    is_plain = type(a) is not MAPPED and type(b) is not MAPPED and not _repeats(out)
    if is_bare and is_plain and type(axis) is int and axis == -1:  # as in nearly all small calls
        result = compute(ufunc, a, b, out)
        if result is not NotImplemented:
            return result

    if type(ufunc) is NamedFunction:
        ufunc = ufunc.ufunc
    call = _Call()
    call.function = ufunc
    call.is_ufunc = _expect_binary(ufunc, b)
    call.rule = rule_argument(mode, axis)
    call.dtype = None if dtype is None else dtype_argument(dtype)
    call.casting = casting
    call.number = casting_number(casting)
    call.axis = axis_argument(axis, call.rule)
    call.out = out
    call.where = where
    return _by_rule(call, a, b)


def of_one(
    ufunc: Any, x: Any, /, *, out: Any = None, dtype: Any = None, casting: Any = "same_kind", where: Any = True
) -> Any:
    """Apply a ufunc of one operand to `x`, with options: what `elementwise` does for two."""
    is_bare = dtype is None and casting is SAME_KIND and where is True
    if is_bare and _is_plain_pair(x, out):
        return compute_one(ufunc, x, out)
    casting_number(casting)
    kwargs = {} if dtype is None else {"dtype": dtype_argument(dtype)}
    if casting != SAME_KIND:
        kwargs["casting"] = casting
    if _override((x, out, where)):
        _check_memory(out)
    else:
        x = _operand("x", x, True, None)
        where = _condition_for(x, where)
        if is_tensor(out):
            return into_tensor(of_one, out, ufunc, x, where=where, **kwargs)
        _check_out(out, operand_shape(x))

    if out is not None:
        kwargs["out"] = out
    if where is not True:
        kwargs["where"] = where
    return ufunc(*with_plain_bools((x,)), **kwargs)


def _is_plain_pair(x: Any, out: Any) -> bool:
    """Return whether these are two arrays of one shape, and `out` repeats no item."""
    return type(x) is ndarray and type(out) is ndarray and shape_of(x) == shape_of(out) and not _repeats(out)


def _condition_for(x: Any, where: Any) -> Any:
    """Return `where` as an array whose shape fits `x`, or True."""
    if where is True:
        return where
    if not isinstance(where, ndarray):
        where = as_array("where", where).astype(BOOL)
    right_aligned(operand_shape(where), operand_shape(x), "where")
    return where


class _Options:
    """The options that `elementwise` and `chain` share, read and checked, except for `out`."""

    rule: str  # the name of the mode, which may follow from `axis`
    axis: Any  # in mode 'pdpd', where operands begin
    dtype: Any  # None if not given
    casting: Any
    number: int  # NumPy's for `casting`, or `SATURATE`
    out: Any


class _Call(_Options):
    """The options of a call of a function of two operands."""

    function: Any
    is_ufunc: bool
    where: Any  # True, or a mask


class Chain(_Options):
    """How functions are called one after the other; the data is converted to `dtype` first.

    Its methods check and run single steps for chains that have reductions, whose modules are not compiled.
    """

    steps: Any  # as they are given

    def first_conversion(self, array: Any) -> tuple[Any, Any]:
        """Return data, and the dtype to which it is converted first; refuse what `casting` forbids."""
        return _first_conversion(array, self)

    def plain_step(self, step: Any, i: int, shape: Shape, dtype: Any) -> tuple[list[Any], Shape, Any]:
        """Check step `i` on data of a shape and dtype; return it in a list, and the shape and dtype that it gives."""
        return _plain_steps(self, (step,), i, shape, dtype)

    def target(self, shape: Shape, last: Any) -> Any:
        """Return the array of `out`, or None; refuse an array that does not fit a result of a shape and dtype."""
        return _chain_target(self, shape, last)

    def run(self, array: Any, steps: list[Any], dtype: Any, out: Any) -> Any:
        """Run checked steps on an array: by the core, or else by one call for each step."""
        allowed = SATURATE if self.number == SATURATE else UNSAFE
        result = run_steps(array, tuple(steps), 0, -1, dtype, allowed, out)
        if result is None:
            own = array.dtype if dtype is None and not steps else dtype
            result = _step_by_step(array, steps, own, out, self.number)
        return result


def _by_rule(call: _Call, a: Any, b: Any) -> Any:
    """Compute a call by the core, or else by the function itself."""
    if not _are_plain(a, b, call) and _any_overrides(a, b, call):
        return _dispatched(call, a, b)
    if call.where is not True and not isinstance(call.where, ndarray):
        call.where = as_array("where", call.where).astype(BOOL)  # None is False, as ufuncs have it
    first = a if type(a) is ndarray else _operand("a", a, call.is_ufunc, b)
    second = b if type(b) is ndarray else _operand("b", b, call.is_ufunc, a)
    return _of_ufunc(call, first, second) if call.is_ufunc else _by_function(call, first, second)


def _of_ufunc(call: _Call, a: Any, b: Any) -> Any:
    """Call a ufunc's loop by the core, or else the ufunc itself; if necessary, the rules check the shapes before."""
    result = _by_core(call, a, b)
    if result is not NotImplemented:
        return result
    a, b = with_plain_bools((a, b))
    result = _passed_on(call, a, b)
    return _by_function(call, a, b) if result is NotImplemented else result


def _expect_binary(function: Any, b: Any) -> bool:
    """Refuse anything but a function of two operands, and a call without the second; return whether it is a ufunc."""
    is_ufunc = isinstance(function, UFUNC)
    if not is_ufunc or not is_binary(function):
        check_function(function)
    if b is NO_VALUE:
        raise TypeError("`b` expected an array_like, got none")
    return is_ufunc


def _are_plain(a: Any, b: Any, call: _Call) -> bool:
    """Return whether all arrays of a call are of the base class, as in most calls: none of them overrides NumPy."""
    out = call.out
    return type(a) is ndarray and type(b) is ndarray and call.where is True and (out is None or type(out) is ndarray)


def _any_overrides(a: Any, b: Any, call: _Call) -> bool:
    """Return whether an operand, the mask or an `out` is not an array and overrides NumPy."""
    outs = call.out if type(call.out) is tuple else (call.out,)
    return _override((a, b, call.where)) or _override(outs)


def _by_core(call: _Call, a: Any, b: Any) -> Any:
    """Call the ufunc's loop by the core; return NotImplemented if the core declines the call."""
    if call.where is not True:
        return NotImplemented
    out = call.out
    is_pair = type(out) is tuple and len(out) == 1
    only = out[0] if is_pair else out
    target = only if only is None or type(only) is ndarray else as_base(only)

    result = apply(call.function, a, b, _number(call.rule), call.axis, target, call.dtype, call.number)
    if result is None:
        return NotImplemented
    return result if out is None else only


def _passed_on(call: _Call, a: Any, b: Any) -> Any:
    """Call the ufunc itself if the shapes fit; return NotImplemented if the rules must check the call."""
    out = call.out
    if call.dtype is not None or call.number != NUMBER_OF_SAME_KIND or type(out) is tuple:
        return NotImplemented
    target = out if out is None or type(out) is ndarray else as_base(out)
    if _repeats(target):
        return NotImplemented

    mask = None if call.where is True else as_base(call.where)
    result = pass_on(call.function, a, b, _number(call.rule), call.axis, target, mask)
    return result if out is None or result is NotImplemented else out


def _by_function(call: _Call, a: Any, b: Any) -> Any:
    """Check the shapes of a call by its rule, then call the function."""
    given = operand_shape(b)
    source, shape = step_shapes("b", "a", given, operand_shape(a), call.rule, call.axis)
    operands = (a, _aligned(b, given, source))
    kwargs = _options(call)
    if call.where is not True:
        right_aligned(operand_shape(call.where), shape, "where")
    if call.out is not None:
        if is_tensor(call.out):
            own = {"mode": call.rule, "axis": call.axis}
            return into_tensor(elementwise, call.out, call.function, *operands, **own, **kwargs)
        _check_out(call.out, shape)
        kwargs["out"] = call.out

    # Unpacking checks that an error has an exception: NumPy's may have none.
    if call.is_ufunc:
        return call.function(*operands, **kwargs)
    try:
        return call.function(*operands, **kwargs)
    except TypeError as error:
        shapes = f"arrays of shapes {operand_shape(operands[0])} and {operand_shape(operands[1])}"
        error.add_note(f"`ufunc` expected a function of two arrays, got {name_of(call.function)}, and {shapes} for it")
        raise


def _override(values: tuple[Any, ...]) -> bool:
    """Return whether any operand is not an array and overrides NumPy."""
    for value in values:
        if value is None or isinstance(value, ndarray) or type(value) in SCALARS:
            continue
        if overrides(value):
            return True
    return False


def _dispatched(call: _Call, a: Any, b: Any) -> Any:
    """Call a function with objects that override NumPy: their class decides everything."""
    _expect_numpys(call.rule, [a, b])
    _check_memory(call.out)
    kwargs = _options(call)
    if call.out is not None:
        kwargs["out"] = call.out
    return call.function(*(a, b), **kwargs)


def _options(call: _Call) -> dict[str, Any]:
    """Return the arguments that only some calls have: functions other than ufuncs may lack them."""
    kwargs: dict[str, Any] = {}
    if call.dtype is not None:
        kwargs["dtype"] = call.dtype
    if call.casting is not SAME_KIND:
        kwargs["casting"] = call.casting
    if call.where is not True:
        kwargs["where"] = call.where
    return kwargs


def _expect_numpys(rule: str, operands: list[Any]) -> None:
    """Refuse rules other than NumPy's for operands that override NumPy: their shapes may not describe all they have."""
    if rule is not NUMPY:
        for operand in operands:
            if _override((operand,)):
                got = f"{rule!r} for {type(operand).__name__}; convert it to an array"
                raise ValueError(f"`mode` expected 'numpy' if an operand overrides NumPy, got {got}")


def _repeats(out: Any) -> bool:
    """Return whether an array has axes of stride 0, as `_check_out` says: a ufunc would write to it."""
    if type(out) is not ndarray:
        return False
    array = out
    for axis in range(array.ndim):  # noqa: SIM110 (compiled, the loop takes a third of the generator's time)
        if array.strides[axis] == 0 and array.shape[axis] > 1:
            return True
    return False


def _check_memory(out: Any) -> None:
    """Refuse an `out` whose items are the same memory."""
    for each in out if isinstance(out, tuple) else (out,):
        if isinstance(each, ndarray):
            refuse_repeated(each, each)


def chain(
    data: ArrayLike,
    *steps: Any,
    dtype: DType = None,
    casting: ChainCasting = "same_kind",
    mode: ElementwiseMode | None = None,
    axis: int = -1,
    out: Any = None,
) -> Any:
    """Convert `data`, then apply one function after another, in one pass: arithmetic without temporaries.

    Steps may also reduce. No array of the broadcast's size is made.

    Parameters
    ----------
    data : array_like
        The first operand, of any layout. A transposed array is read in place: HWC becomes CHW in the same pass.
    *steps : numpy.ufunc, pair of a numpy.ufunc and an array_like, or pair of a reduction and its axis
        The steps, in order: a ufunc of one operand, or a pair of a binary ufunc and its second operand. The first
        operand is the result of the previous step. `numpy.round`, ``(np.round, decimals)`` and ``(np.clip, low, high)``
        are also steps; one of the bounds may be None. bcast's functions, such as `bcast.add`, work the same way.

        ``(np.sum, axis)`` reduces along an axis, along a tuple of axes, or for None, along all axes. So do `mean`,
        `prod`, `max`, `min`, `any`, `all`, `argmax` and `argmin`, of NumPy or of bcast, and the method `reduce` of
        ufuncs such as `numpy.add` and `numpy.maximum`. Other steps may follow, including reductions. To keep the
        reduced axis, pass ``functools.partial(np.sum, axis=axis, keepdims=True)``. The partial may also have `dtype`,
        and for `bcast.sum` and `bcast.mean`, ``exact=True``.
    dtype : dtype_like, optional
        The dtype to which `data` is converted first. The default is its own.
    casting : {'no', 'equiv', 'safe', 'same_kind', 'unsafe', 'saturate'}
        The allowed conversions of `data`, and of the last result to the dtype of `out`. Steps convert like ufuncs.
        ``'saturate'`` is ``'same_kind'``, and also converts real numbers to integers: it rounds them, halves to even,
        and clips them to the range of the dtype. NaN becomes 0, without a warning. Floats and integers of other
        packages, such as float8 and int4 of ml_dtypes, count as real numbers.
    mode, axis
        The rule for operands of steps, as in `elementwise`: in mode 'pdpd', they begin at `axis` of the data. In mode
        'numpy', they may add axes to the result, or stretch it.
    out : ndarray, optional
        As in `elementwise`.

    Returns
    -------
    ndarray or scalar
        A new C-contiguous array; or `out`, if given. A scalar if a reduction leaves no axes. For subclasses, and other
        objects that override NumPy, the result of their functions.

    Raises
    ------
    ValueError, TypeError, numpy.exceptions.AxisError
        As in `elementwise`, before anything is written. Also `TypeError` if a step is neither a ufunc nor such a pair,
        or if `casting` forbids a conversion.

    See Also
    --------
    chain_memory : Find the memory that a chain needs.

    Notes
    -----
    Results and warnings match, bit for bit, ``data.astype(dtype)`` followed by one NumPy call for each step. A few
    thousand items at a time go through all steps in the fastest cache, on several threads. Steps of float32 arithmetic
    share a single loop, including conversions from and to bytes, bounds, and `numpy.round` without decimals. The steps
    of other chains are calls of `elementwise`. If `numpy.errstate` or a warning filter turns a floating-point error
    into an exception, `out` has already been written.

    Chains with reductions run block by block, and need memory only for the result and some blocks. Reductions give the
    results of bcast's functions: NumPy's bits, except for sums, means and products, which are more accurate. Bits do
    not depend on the number of threads. Differences are squared and summed directly, so close points stay distinct,
    unlike in ``a @ a + b @ b - 2 * a @ b``. Objects and strings are reduced along whole axes. For classes that override
    NumPy, the chain calls NumPy's functions one by one on whole arrays. If such a chain is interrupted, part of an
    `out` of more than 4 MB may have been written.

    Examples
    --------
    A picture of bytes, made ready for a network: float32, scaled and shifted for each channel, channels first.

    >>> import numpy as np
    >>> import bcast
    >>> picture = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)  # HWC
    >>> mean = np.array([1, 2, 3], np.float32)
    >>> std = np.array([1, 2, 4], np.float32)
    >>> steps = (np.subtract, mean), (np.divide, std)
    >>> bcast.chain(picture.transpose(2, 0, 1), *steps, dtype=np.float32, mode="pdpd", axis=0)
    array([[[-1.  ,  2.  ],
            [ 5.  ,  8.  ]],
    <BLANKLINE>
           [[-0.5 ,  1.  ],
            [ 2.5 ,  4.  ]],
    <BLANKLINE>
           [[-0.25,  0.5 ],
            [ 1.25,  2.  ]]], dtype=float32)

    A brighter picture, in bytes again: rounded, and clipped at 255.

    >>> brighter = np.empty_like(picture)
    >>> bcast.chain(picture, (np.multiply, 25.5), dtype=np.float32, out=brighter, casting="saturate")[1]
    array([[153, 178, 204],
           [230, 255, 255]], dtype=uint8)
    >>> bcast.chain(np.array([0.125, 2.5, -1]), (np.clip, 0, None), (np.round, 2))
    array([0.12, 2.5 , 0.  ])

    Distances between points and centres, and the nearest centre, without an array of all differences.

    >>> points = np.array([[0.0, 0.0], [3.0, 4.0], [8.0, 6.0]])
    >>> centres = np.array([[0.0, 1.0], [6.0, 8.0]])
    >>> squares = (np.subtract, centres), np.square, (np.sum, -1)
    >>> bcast.chain(points[:, np.newaxis], *squares, np.sqrt)
    array([[ 1.        , 10.        ],
           [ 4.24264069,  5.        ],
           [ 9.43398113,  2.82842712]])
    >>> bcast.chain(points[:, np.newaxis], *squares, (np.argmin, -1))
    array([0, 0, 1])

    The share of each item in the sum of its row: the sum keeps its axis.

    >>> from functools import partial
    >>> bcast.chain(centres, partial(np.sum, axis=-1, keepdims=True), np.reciprocal, (np.multiply, centres))
    array([[0.        , 1.        ],
           [0.42857143, 0.57142857]])
    """
    # Clearer whole: the ways to run a chain, in the order of the attempts; the first makes the fewest objects.
    rule = rule_argument(mode, axis)
    wanted = None if dtype is None else dtype_argument(dtype)
    number = chain_casting(casting)
    axis = axis_argument(axis, rule)
    array = data if type(data) is ndarray else as_operand("data", data)
    result = run_steps(array, steps, _number(rule), axis, wanted, number, out)
    if result is not None:
        return result

    plain = with_ufuncs(steps)
    if plain is not steps:
        return chain(array, *plain, dtype=dtype, casting=casting, mode=mode, axis=axis, out=out)
    call = _chain_of(rule, wanted, casting, number, axis, out, steps)  # only now: it takes a tenth of a small call
    if is_tensor(out) and not overrides(out):
        rules = {"dtype": wanted, "casting": casting, "mode": rule, "axis": axis}
        return into_tensor(chain, out, array, *steps, **rules)
    if is_handed_on(array) or overrides(out) or is_masked(out) or _steps_hand_on(steps):
        return _handed_on(array, call)
    if _has_reductions(steps):
        return _reduced(array, call)
    return _of_plain_arrays(array, call)


def chain_memory(
    data: ArrayLike,
    *steps: Any,
    dtype: DType = None,
    casting: ChainCasting = "same_kind",
    mode: ElementwiseMode | None = None,
    axis: int = -1,
) -> Any:
    """Return an upper bound on the memory that a chain needs, without running it.

    Parameters
    ----------
    data, *steps, dtype, casting, mode, axis
        As in `chain`. Only shapes and dtypes matter.

    Returns
    -------
    ChainMemory
        A named tuple of two numbers of bytes: `result` for the result, unless `out` is given, and `blocks`, an upper
        bound on all intermediate blocks of all threads.

    Raises
    ------
    ValueError, TypeError, numpy.exceptions.AxisError
        As in `chain`. Also `TypeError` for classes that override NumPy, whose memory is unknown.

    Notes
    -----
    An `out` also needs memory for `result` if it overlaps an operand, or has another dtype than the last step's result.
    So does a chain without reductions whose steps cannot run in blocks: each of its steps makes an array.

    Examples
    --------
    The differences between 100,000 points and as many others would take 240 GB.

    >>> import numpy as np
    >>> import bcast
    >>> a = b = np.zeros((100_000, 3))
    >>> memory = bcast.chain_memory(a[:, np.newaxis], (np.subtract, b), np.square, (np.sum, -1), (np.argmin, -1))
    >>> memory.result
    800000
    >>> memory.blocks < 64 << 20
    True
    """
    call = read_chain(steps, dtype, casting, mode, axis)
    return calls.memory(plain_data(data, steps), call)


def with_ufuncs(steps: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the steps of a chain, with ufuncs in place of bcast's functions of the same names."""
    plain: list[Any] = []
    for step in steps:
        if type(step) is NamedFunction:
            plain.append(step.ufunc)
        elif (type(step) is tuple or type(step) is list) and len(step) > 0 and type(step[0]) is NamedFunction:
            plain.append((step[0].ufunc, *step[1:]))
        else:
            plain.append(step)
    for i, step in enumerate(plain):
        if step is not steps[i]:
            return tuple(plain)
    return steps


def read_chain(steps: tuple[Any, ...], dtype: Any, casting: Any, mode: Any, axis: Any) -> Chain:
    """Return a chain from the arguments of `chain` other than data and `out`."""
    steps = with_ufuncs(steps)
    rule = rule_argument(mode, axis)
    wanted = None if dtype is None else dtype_argument(dtype)
    number = chain_casting(casting)
    return _chain_of(rule, wanted, casting, number, axis_argument(axis, rule), None, steps)


def plain_data(data: Any, steps: tuple[Any, ...]) -> Any:
    """Return data as an array; refuse data and operands whose classes may decide the result of a chain."""
    array = as_operand("data", data)
    if is_handed_on(array) or _steps_hand_on(steps):
        raise TypeError(f"`data` expected arrays of the base class, got {type(array).__name__} and such operands")
    return array


def _chain_of(rule: str, dtype: Any, casting: Any, number: int, axis: Any, out: Any, steps: Any) -> Chain:
    """Return a chain with these fields, which come one by one."""
    call = Chain()
    call.rule = rule
    call.dtype = dtype
    call.casting = casting
    call.number = number
    call.axis = axis
    call.out = out
    call.steps = steps
    return call


def _of_plain_arrays(array: Any, call: Chain) -> Any:
    """Check the steps, align their operands, and try the core once more; as a last resort, call each step."""
    array, own = _first_conversion(array, call)
    plain, shape, last = _plain_steps(call, call.steps, 0, shape_of(array), own)
    out = call.out
    target = _chain_target(call, shape, last)

    allowed = SATURATE if call.number == SATURATE else UNSAFE  # everything has been checked
    is_converted = call.dtype is not None
    result = run_steps(array, tuple(plain), 0, -1, own if is_converted else None, allowed, target)
    if result is None:
        result = _step_by_step(array, plain, own if is_converted or not plain else None, target, call.number)
    return result if out is None else out


def _first_conversion(array: Any, call: Chain) -> tuple[Any, Any]:
    """Return a chain's data, and the dtype to which it is converted first; refuse what `casting` forbids."""
    wanted = call.dtype
    if call.number != SATURATE:
        return prepared(array, shape_of(array), None, wanted, call.casting)
    if wanted is not None and saturates(dtype_of(array), wanted):
        return array, wanted
    if wanted is not None and not np.can_cast(array.dtype, wanted, SAME_KIND):
        raise TypeError(f"`dtype` expected a dtype that casting='saturate' allows for {array.dtype}, got {wanted}")
    return prepared(array, shape_of(array), None, wanted, SAME_KIND)


def _plain_steps(call: Chain, steps: Any, first: int, shape: Shape, dtype: Any) -> tuple[list[Any], Shape, Any]:
    """Check steps of a chain on data of a shape and dtype; return them, and the shape and dtype of their result.

    Operands become arrays that broadcast by NumPy's rule. `first` is the number of the first step among all.
    """
    plain: list[Any] = []
    for i, step in enumerate(steps, first):
        function, operands = _step(f"steps[{i}]", step)
        kinds: list[Any] = []
        for operand in operands:
            kinds.append(dtype_of(operand) if type(operand) is ndarray else operand)
        shape = _align_operands(i, function, operands, shape, call)
        plain.append((function, *operands) if operands else function)
        dtype = _dtype_after(function, dtype, kinds)
    return plain, shape, dtype


def _align_operands(i: int, function: Any, operands: list[Any], shape: Shape, call: Chain) -> Shape:
    """Align the operands of step `i` with the result of the previous step; return the shape of its own result."""
    if is_round(function):  # its decimals are not an operand
        return shape
    for k, operand in enumerate(operands):
        if operand is not None:  # None is no bound
            given = operand_shape(operand)
            source, shape = step_shapes(f"steps[{i}]", "data", given, shape, call.rule, call.axis)
            operands[k] = _aligned(operand, given, source)
    return shape


def _chain_target(call: Chain, shape: Shape, last: Any) -> Any:
    """Return the array of a chain's `out`, if given; refuse one that does not fit, or a cast that `casting` forbids."""
    if call.out is None:
        return None
    target = _writable(call.out, shape)
    casting = call.casting
    rule = casting
    if call.number == SATURATE:
        if saturates(last, target.dtype):
            return target
        rule = SAME_KIND
    if not np.can_cast(last, target.dtype, rule):
        remedy = _casting_remedy(last, target.dtype) if casting == SAME_KIND else ""
        got = f"{brief(target.dtype)}{remedy}"
        raise TypeError(f"`out` expected a dtype that casting={casting!r} allows for {brief(last)}, got {got}")
    return target


def _step_by_step(array: Any, plain: list[Any], dtype: Any, target: Any, number: int) -> Any:
    """Run a chain by one NumPy call for each step; the data is converted to `dtype` first, unless that is None.

    NumPy's loops may give other last bits for contiguous items, so data that is not converted is not copied.
    """
    if _is_of_package(dtype) or (target is not None and is_of_package(target.dtype)):
        array = with_plain_bytes(array)
    result = array
    if dtype is not None:
        is_cut = number == SATURATE and saturates(array.dtype, dtype)
        result = saturated(array, dtype) if is_cut else array.astype(dtype, copy=bool(plain) or target is None)
    for step in plain:
        result = _stepped(step, result)

    if target is None:
        copies = np.may_share_memory(result, array)  # `round` of integers gives a view in NumPy 2.0
        return np.array(result, order="C") if copies else np.asarray(result, order="C")
    return _convert_result(result, target, number)


def _has_reductions(steps: Any) -> bool:
    """Return whether any step of a chain is a reduction."""
    for step in steps:  # noqa: SIM110 (compiled, a loop takes less than a generator)
        if _is_reduction(step):
            return True
    return False


def _reduced(array: Any, call: Chain) -> Any:
    """Run a chain that has reductions, and report its floating-point errors."""
    result, target, errors = calls.reduced(array, call)
    for name, kinds in errors:
        report_kinds(name.encode(), kinds)
    if target is not None:
        _convert_result(result, target, call.number)
    return result if call.out is None else call.out


def _is_reduction(step: Any) -> bool:
    """Return whether a step is a reduction: neither a ufunc, as most steps are, nor NumPy's `clip` or `round`."""
    function = _function_of(step)
    if isinstance(function, UFUNC) or function is CLIP or is_round(function):
        return False
    return is_fold(step)


def _is_of_package(dtype: Any) -> bool:
    """Return whether a dtype is given, and is another package's."""
    return dtype is not None and is_of_package(dtype)


def _convert_result(result: Any, target: Any, number: int) -> Any:
    """Convert the result of the steps of a chain into its target."""
    if not isinstance(result, (ndarray, generic)):  # an item: ufuncs return one for 0-d objects
        item = result
        result = np.empty((), object)
        result[()] = item
    if number == SATURATE and saturates(result.dtype, target.dtype):
        result = saturated(result, target.dtype)
    elif result.dtype.kind not in "biufc":
        result = result.astype(target.dtype)  # this may fail
    convert_into(target, np.asarray(result))
    return target


def chain_casting(casting: ChainCasting) -> int:
    """Return NumPy's number for a rule of casting, or the number of 'saturate', which only chains have."""
    if casting is SAME_KIND:
        return NUMBER_OF_SAME_KIND
    return CHAIN_CASTINGS.index(mode_of(casting, CHAIN_CASTINGS, "casting"))


def _casting_remedy(last: Any, wanted: Any) -> str:
    """List the castings that allow a conversion."""
    if saturates(last, wanted):
        return "; use casting='saturate', which rounds and clips, or casting='unsafe'"
    return "; use casting='unsafe'"


def _steps_hand_on(steps: Any) -> bool:
    """Return whether arithmetic passes an operand of these steps to NumPy unchanged."""
    for step in steps:
        if type(step) is tuple or type(step) is list:
            for operand in step[1:]:
                if is_handed_on(operand):
                    return True
    return False


def _handed_on(data: Any, call: Chain) -> Any:
    """Run a chain by one NumPy call for each step: the class of data, operands or `out` may decide the result."""
    out, casting = call.out, call.casting
    if casting == "saturate":
        raise ValueError("`casting` expected one of NumPy's rules for operands that override NumPy, got 'saturate'")

    functions: list[Any] = []
    for i, step in enumerate(call.steps):
        name = f"steps[{i}]"
        functions.append((fold_of(name, step), []) if _is_reduction(step) else _step(name, step))
    aligned = _check_handed_on(data, functions, call)
    if not functions:
        result = _converted(data, call.dtype, casting, True)
        return result if out is None else _assigned(out, data, result, casting)
    result = data if call.dtype is None else _converted(data, call.dtype, casting, False)
    return _called(result, functions, aligned, call)


def _check_handed_on(data: Any, functions: list[Any], call: Chain) -> int:
    """Align the operands of steps, and check `out`; return how many steps are aligned.

    If an operand overrides NumPy, its class aligns it, by NumPy's rule. After a reduction, shapes are not known yet.
    """
    operands = [data, call.out]
    for _, own in functions:
        operands.extend(own)
    if _override(tuple(operands)):
        _expect_numpys(call.rule, operands)
        _check_memory(call.out)
        return len(functions)

    shape = operand_shape(data)
    for i, (function, own) in enumerate(functions):
        if isinstance(function, Fold):
            return i
        shape = _align_operands(i, function, own, shape, call)
    if call.out is not None:
        _check_out(call.out, shape)
    return len(functions)


def _called(result: Any, functions: list[Any], aligned: int, call: Chain) -> Any:
    """Call the functions of a chain one after the other; the last one writes to `out`."""
    out, casting = call.out, call.casting
    last = len(functions) - 1
    for i, (function, own) in enumerate(functions):
        if isinstance(function, Fold):
            result = function.by_its_class(result)
            continue
        if i >= aligned:
            _align_operands(i, function, own, operand_shape(result), call)
        options: dict[str, Any] = {}
        if i == last and out is not None and aligned > last:
            options["out"] = out
            if casting is not SAME_KIND and not is_round(function):
                options["casting"] = casting
        result = function(result, *own, **options)
    has_written = out is None or (aligned > last and not isinstance(functions[last][0], Fold))
    return result if has_written else _assigned(out, result, result, casting)


def _assigned(out: Any, data: Any, result: Any, casting: Any) -> Any:
    """Copy the result of a chain without steps to its `out`."""
    if is_masked(data):
        as_array("data", data)  # refuses it: its mask would be lost
    np.copyto(out, result, casting=casting)
    return out


def _converted(data: Any, dtype: Any, casting: Any, copied: bool) -> Any:
    """Convert data whose class may decide the result: by its own method if it is not an array."""
    if isinstance(data, ndarray):
        _, own = prepared(np.asarray(data), operand_shape(data), None, dtype, casting)
        return ndarray.astype(data, own, order="C" if copied else "K", copy=copied)
    found: Any = getattr(data, "dtype", None)
    if not isinstance(found, np.dtype) or not hasattr(data, "astype"):
        got = f"{type(data).__name__}; convert it before the chain"
        raise TypeError(f"`data` expected an array if `dtype` is given or there are no steps, got {got}")
    if dtype is not None and not np.can_cast(found, dtype, casting):
        raise TypeError(
            f"`dtype` expected a dtype that casting={casting!r} allows for data of {brief(found)}, got {brief(dtype)}"
        )
    return data.astype(found if dtype is None else dtype)


def where(condition: ArrayLike, x: ArrayLike, y: ArrayLike, /, *, out: Any = None) -> Any:
    """Choose items of `x` where a condition is true, and items of `y` elsewhere: a faster `numpy.where`.

    Parameters
    ----------
    condition : array_like
        The positions at which the items of `x` are chosen: bools, or anything that NumPy converts to bools.
    x, y : array_like
        The items to choose from. The three operands broadcast against each other. Errors are as in `elementwise`.
    out : ndarray, optional
        As in `elementwise`, but with exactly the dtype of the result.

    Returns
    -------
    ndarray
        The chosen items, in the common dtype of `x` and `y`; or `out`, if given.

    Notes
    -----
    Items may have any size. Conversions and broadcasts happen block by block in the fastest cache. Objects, strings of
    variable length, structures, subclasses and other classes that override NumPy go to `numpy.where`.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> mask = np.array([[True], [False]])
    >>> bcast.where(mask, np.array([1, 2, 3]), 0)
    array([[1, 2, 3],
           [0, 0, 0]])
    """
    are_arrays = type(condition) is ndarray and type(x) is ndarray and type(y) is ndarray
    if not are_arrays or out is not None:
        if _override((condition, x, y, out)):
            chosen = NUMPYS_WHERE(*(condition, x, y))
            return chosen if out is None else _copied(chosen, out)
        condition = _operand("condition", condition, True, None)
        x = _operand("x", x, True, None)
        y = _operand("y", y, True, None)

    result = choose(condition, x, y, None if out is None else as_base(out))
    if result is None:
        return _chosen_by_numpy(condition, x, y, out)
    return result if out is None else out


def _chosen_by_numpy(test: Any, x: Any, y: Any, out: Any) -> Any:
    """Choose items by NumPy if the core declines: objects, strings, operands without a common dtype."""
    if is_tensor(out):
        return into_tensor(where, out, test, x, y)
    shape = merge((operand_shape(test), operand_shape(x), operand_shape(y)), "condition, x, y")
    if not (_has_bools(x) and _has_bools(y)):  # bools are copied unchanged
        x, y = with_plain_bools((x, y))
    if out is None:
        return NUMPYS_WHERE(test, x, y)

    array = _writable(out, shape)
    chosen = NUMPYS_WHERE(test, x, y)
    if overrides(chosen) or overrides(out):
        return _copied(chosen, out)
    if not are_alike(dtype_of(np.asarray(chosen)), array.dtype):
        raise TypeError(f"`out` expected dtype {brief(chosen.dtype)}, got {brief(array.dtype)}")
    array[...] = chosen
    return out


def _has_bools(operand: Any) -> bool:
    """Return whether this is an array of bools."""
    return isinstance(operand, ndarray) and operand.dtype.char == "?"


def _copied(chosen: Any, out: Any) -> Any:
    """Copy into an `out` of the same shape and dtype, for a class that overrides NumPy."""
    if np.shape(out) != np.shape(chosen):
        raise ValueError(f"`out` expected shape {np.shape(chosen)}, got {np.shape(out)}")
    _check_memory(out)
    np.copyto(out, chosen, casting="no")
    return out


def step_shapes(name: str, owner: str, given: Shape, shape: Shape, rule: Any, axis: Any) -> tuple[Shape, Shape]:
    """Return the shape in which an operand broadcasts with the `owner` of `shape`, and the result's shape.

    The owner is `a` of `elementwise`, or `data` of `chain`.
    """
    if rule == PDPD:
        return pdpd(given, shape, axis, owner).source, shape
    if shape == given:
        return given, shape
    if rule == NONE:
        raise ValueError(f"`{name}` expected {owner}'s own shape {shape} in mode 'none', got {given}")
    if rule == UNIDIRECTIONAL:
        right_aligned(given, shape, owner)
        return given, shape
    return given, merge((shape, given), "a, b" if owner == "a" else "data, steps")


def _number(rule: str) -> int:
    """Return the number by which the core knows a mode."""
    if rule is NUMPY:
        return 0
    if rule is NONE:
        return 1
    if rule is UNIDIRECTIONAL:
        return 2
    if rule is PDPD:
        return 3
    raise ValueError(f"expected a mode with a number in `_apply/operands.pxd`, got {rule}")


def rule_argument(mode: Any, axis: Any) -> str:
    """Check that the user's `mode` is a rule, and return it; if it is None, return the rule that the axis implies."""
    return mode_of(rule_of(axis) if mode is None else mode, MODES, "mode")


def axis_argument(axis: Any, rule: str) -> Any:
    """Return an axis as an integer; refuse one if the rule does not use it."""
    if (type(axis) is not int or axis != -1) and rule is not PDPD:
        expect_default_axis(axis, rule)
    return axis if type(axis) is int else integer("axis", axis)


def _operand(name: str, value: Any, weak: bool, other: Any) -> Any:
    """Convert an operand to an array, unless it is one, or a Python scalar that a `weak` function accepts unchanged.

    A `weak` function also accepts a NumPy scalar unchanged if the other operand is an array.
    """
    if isinstance(value, ndarray):
        return as_base(value) if weak else value
    if weak and type(value) in SCALARS:
        return value
    if weak and isinstance(value, generic) and (isinstance(other, generic) or type(other) in SCALARS):
        return value
    return as_operand(name, value)


def _aligned(operand: Any, shape: Shape, source: Shape) -> Any:
    """Reshape an operand of `shape` to `source`, unless that only adds leading 1s, which functions do themselves."""
    if source[len(source) - len(shape) :] == shape:
        return operand
    if type(operand) is ndarray:
        return reshaped(operand, source)
    result = operand.reshape(source)  # by its own method: a subclass may have more to reshape than the items
    if not isinstance(result, ndarray) or operand_shape(result) != source:
        raise ValueError(f"`b` expected an array that can be reshaped to {source}, got {type(operand).__name__}")
    return result


def check_function(ufunc: object) -> None:
    """Refuse objects that are known not to be functions of two arrays."""
    if type(ufunc) is FunctionType and ufunc.__module__ != STATISTICS:
        return  # the user's: only other types are refused below
    got = unfit_ufunc(ufunc) if isinstance(ufunc, np.ufunc) else unfit_function(ufunc)
    if got:
        raise TypeError(f"`ufunc` expected an element-wise function of two operands, got {got}")


def _check_out(out: Any, shape: Shape) -> None:
    """Refuse an `out` of another shape, to which a ufunc would broadcast the result, and one that is read-only."""
    for each in out if isinstance(out, tuple) else (out,):
        if isinstance(each, ndarray):
            if shape_of(each) != shape:
                raise ValueError(f"`out` expected shape {shape}, got {shape_of(each)}")
            if not np.asarray(each).flags.writeable:
                raise ValueError("`out` expected a writeable array, got a read-only one")
            refuse_repeated(each, each)
        elif each is not None and not hasattr(each, "__array_ufunc__"):
            raise TypeError(f"`out` expected an array, got {type(each).__name__}")


def _writable(out: Any, shape: Shape) -> Any:
    """Return the array of a user's `out`, which must fit a result; a subclass may misreport its attributes."""
    _check_out(out, shape)
    if not isinstance(out, ndarray):
        raise TypeError(f"`out` expected an array, got {type(out).__name__}")
    return as_array("out", out)


def _step(name: str, step: Any) -> tuple[Any, list[Any]]:
    """Return the function of a step, and its operands after the first: arrays, Python scalars, None."""
    is_pair = isinstance(step, (tuple, list))
    function = _function_of(step)
    operands: list[Any] = []
    if is_pair:
        for k in range(1, len(step)):
            operands.append(step[k])

    if not _takes(function, len(operands), is_pair):
        expected = "a ufunc of one operand, a pair of a ufunc of two and the second operand, np.clip or np.round"
        raise TypeError(f"`{name}` expected {expected}, got {show(step)}{_step_remedy(step, function)}")
    for k, operand in enumerate(operands):
        operands[k] = _step_operand(name, function, operand)
    return function, operands


def _function_of(step: Any) -> Any:
    """Return the function of a user's step, given alone, or first in a tuple or list."""
    return step[0] if isinstance(step, (tuple, list)) and step else step


def _takes(function: Any, count: int, is_pair: bool) -> bool:
    """Return whether a function is a step with `count` operands after the first, given in a pair or alone."""
    if function is CLIP:
        return count == 2
    if is_round(function):
        return count == 1 or not is_pair
    return _is_simple(function) and function.nin == count + 1 and is_pair == (count > 0)


def _step_operand(name: str, function: Any, operand: Any) -> Any:
    """Return an operand of a step after the first: an array, a Python scalar, decimals, or None for no bound."""
    if is_round(function):
        return _decimals(name, operand)
    if type(operand) in SCALARS or (operand is None and function is CLIP):
        return operand
    return as_operand(name, operand)


def _decimals(name: str, value: Any) -> int:
    """Check the number of decimals of a step that rounds."""
    try:
        return integer(name, value)
    except TypeError:
        raise TypeError(f"`{name}` expected an integer for the decimals of np.round, got {show(value)}") from None


def is_clip(function: Any) -> bool:
    """Return whether this is NumPy's `clip`, a step with two bounds; one may be None."""
    return function is CLIP


def is_round(function: Any) -> bool:
    """Return whether this is NumPy's `round`, which has two names."""
    return function is ROUND or function is AROUND


def _is_simple(function: Any) -> bool:
    """Return whether this is a ufunc of one or two operands with one result for each item."""
    return isinstance(function, UFUNC) and function.nout == 1 and function.signature is None and function.nin <= 2


def _dtype_after(function: Any, given: Any, kinds: list[Any]) -> Any:
    """Return the dtype of a step's result, or raise NumPy's error; `kinds` are operands' dtypes, or Python scalars."""
    if isinstance(function, UFUNC):
        types: list[Any] = [given]
        for kind in kinds:  # for NumPy, int, float and complex are dtypes that follow the other one
            scalar = type(kind)
            types.append(BOOL if scalar is bool else scalar if scalar in SCALARS else kind)
        types.append(None)  # the result's
        return function.resolve_dtypes(tuple(types))[-1]
    examples: list[Any] = []
    for kind in kinds:
        examples.append(np.empty(0, kind) if isinstance(kind, np.dtype) else kind)
    # A warning about the conversion of a scalar comes when the step runs.
    return quietly(function, np.empty(0, given), *examples).dtype


def _stepped(step: Any, result: Any) -> Any:
    """Run a step as a separate call."""
    if isinstance(step, tuple):
        function, *operands = step
        if isinstance(function, UFUNC):
            return elementwise(function, result, *operands)
        plain = with_plain_bools((result, *operands))
        return function(*plain)
    return step(result)


def _step_remedy(step: Any, function: Any) -> str:
    """Suggest a replacement for a wrong step, if one is known."""
    if is_round(function):
        return "; use np.round or (np.round, decimals)"
    if isinstance(function, type) and issubclass(function, generic):
        return f"; use dtype=np.{function.__name__}"
    if getattr(function, "__name__", None) in ("var", "std"):
        return f"; pass the result of the chain to bcast.{function.__name__}"
    if function is CLIP:
        return "; use (np.clip, low, high), with None for no bound"
    if _is_simple(function):
        return f"; use {function.__name__ if function.nin == 1 else f'({function.__name__}, operand)'}"
    if step is not function and isinstance(function, (tuple, list)):
        return "; pass *steps"
    return "; the ufunc comes first" if step is not function and isinstance(step[-1], UFUNC) else ""
