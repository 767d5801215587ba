"""`elementwise`: binary functions under the broadcasting rules of NumPy, ONNX, OpenVINO and PaddlePaddle.

Nothing is materialised. Where the rule asks for it, the second operand is reshaped according to its alignment with the
first; the function broadcasts the rest.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import ndarray
from numpy.typing import ArrayLike

from bcast._api.broadcast import as_array, into_tensor, is_tensor
from bcast._rules.alignment import expect_default_axis, merge, pdpd, right_aligned
from bcast._rules.arguments import Shape, integer, mode_of, show
from bcast._rules.types import ElementwiseMode
from bcast._runtime.arrays import is_binary, reshaped, shape_of

__all__ = ["check_function", "elementwise"]


MODES = NUMPY, NONE, UNIDIRECTIONAL, PDPD = ("numpy", "none", "unidirectional", "pdpd")
UFUNC = np.ufunc
SCALARS = (bool, int, float, complex)


def elementwise(
    ufunc: Callable[..., Any],
    a: ArrayLike,
    b: ArrayLike,
    /,
    *,
    mode: ElementwiseMode = "numpy",
    axis: int = -1,
    out: Any = None,
) -> Any:
    """Apply a binary function to `a` and `b`, broadcast under the rule of `mode`.

    Parameters
    ----------
    ufunc : numpy.ufunc or callable
        A ufunc of two operands, such as `numpy.add`, or a function of two arrays that broadcasts as ufuncs do.
    a, b : array_like
        The operands. Their dtypes are left to the function, and arrays of subclasses are passed on as they are.
    mode : {'numpy', 'none', 'unidirectional', 'pdpd'}
        Which shapes are accepted:

        ``'numpy'``
            Shapes are aligned at the right, and axes of length 1 stretch in both operands. This is also ONNX's
            multidirectional rule.
        ``'none'``
            `a` and `b` must have the same shape.
        ``'unidirectional'``
            Shapes are aligned at the right. Axes of length 1 stretch in `b` only, so the result has `a`'s shape.
        ``'pdpd'``
            `b`, without its trailing axes of length 1, is aligned with `a` starting at `axis`. Axes of length 1 stretch
            in `b` only, so the result has `a`'s shape.
    axis : int, optional
        In mode 'pdpd', the axis of `a` at which `b` starts. The default, -1, means ``a.ndim - b.ndim``.
    out : ndarray or tuple of ndarray, optional
        The array to write the result into, of exactly the result's shape. It is passed on to the function.

    Returns
    -------
    ndarray or scalar
        What the function returns. A ufunc returns a scalar for two operands without axes.

    Raises
    ------
    ValueError
        If the shapes do not fit under `mode`; if `mode` is not one of the four; if `axis` is given but has no meaning
        in the mode; if `out` has another shape. Where `a` is the target, messages call `b` the data.
    numpy.exceptions.AxisError
        If `axis` lies outside `a`. This error is both a `ValueError` and an `IndexError`.
    TypeError
        If `ufunc` is not a binary function; if `axis` is not an integer. Exceptions of the function pass through.

    See Also
    --------
    broadcast : Materialise one operand, under these rules and others.

    Notes
    -----
    These are the rules of the element-wise operations of OpenVINO and ONNX. Operands that are arrays are not copied:
    where `b` needs another shape, the function gets a view of it. Python scalars are passed on to ufuncs unchanged, so
    that they adapt to the other operand's dtype. Other functions get them as arrays without axes.

    Arrays and tensors of other libraries are read and written as `broadcast` does, and NumPy arrays come back.

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
    >>> bcast.elementwise(np.multiply, [1, 2], [[3], [4]], mode="unidirectional")
    Traceback (most recent call last):
        ...
    ValueError: `a` expected at least 2 axes for b of shape (2, 1), got (2,)
    """
    function: Any = ufunc
    is_ufunc = isinstance(function, UFUNC)
    if not is_ufunc or not is_binary(function):
        check_function(function)
    rule = mode_of(mode, MODES, "mode")
    if (type(axis) is not int or axis != -1) and rule is not PDPD:
        expect_default_axis(axis, rule)
    first = a if type(a) is ndarray else _operand("a", a, is_ufunc)
    second = b if type(b) is ndarray else _operand("b", b, is_ufunc)
    shape = _shape(first)
    given = _shape(second)
    if rule is PDPD:
        second = _laid(second, given, pdpd(given, shape, integer("axis", axis), "a").source)
    elif shape != given:
        if rule is NUMPY:
            shape = merge((shape, given), "a, b")
        elif rule is UNIDIRECTIONAL:
            right_aligned(given, shape, "a")
        else:
            raise ValueError(f"`b` expected a's own shape {shape} in mode 'none', got {given}")
    operands = (first, second)  # unpacked, which checks that an error has an exception: NumPy's may have none
    if out is None:
        return function(*operands)
    if is_tensor(out):
        return into_tensor(elementwise, out, function, first, second, mode=mode, axis=axis)
    _check_out(out, shape)
    try:
        return function(*operands, out=out)
    except TypeError as error:
        said = str(error)
        if is_ufunc or ("unexpected keyword argument 'out'" not in said and "takes no keyword arguments" not in said):
            raise
        name = getattr(function, "__name__", "the function")
        text = f"`out` expected None, as {name} has no such argument, got {type(out).__name__}"
        raise TypeError(text) from error


def _operand(name: str, value: Any, weak: bool) -> Any:
    """Convert an operand to an array, unless it is one, or a Python scalar that a `weak` function takes as it is."""
    if isinstance(value, ndarray) or (weak and type(value) in SCALARS):
        return value
    return as_array(name, value)


def _shape(operand: Any) -> Shape:
    """Return an operand's shape."""
    return shape_of(operand) if isinstance(operand, ndarray) else ()


def _laid(operand: Any, shape: Shape, source: Shape) -> Any:
    """Reshape an operand of `shape` to `source`, unless that only adds leading 1s, which functions do themselves."""
    added = len(source) - len(shape)
    for i in range(len(shape)):
        length, laid = shape[i], source[added + i]
        if length != laid:
            return reshaped(operand, source) if type(operand) is ndarray else _reshaped(operand, source)
    return operand


def _reshaped(operand: Any, source: Shape) -> Any:
    """Reshape an array of a subclass by its own method, which may have more to reshape than the items."""
    laid = operand.reshape(source)
    if not isinstance(laid, ndarray) or _shape(laid) != source:
        raise ValueError(f"`b` expected an array that can be reshaped to {source}, got {type(operand).__name__}")
    return laid


def check_function(ufunc: object) -> None:
    """Refuse anything that is not a function of two arrays, as far as that can be known."""
    if isinstance(ufunc, np.ufunc):
        if not is_binary(ufunc):
            operands = f"{ufunc.nin} operands" if ufunc.signature is None else f"the signature {ufunc.signature}"
            raise TypeError(f"`ufunc` expected an element-wise function of two operands, got one of {operands}")
    elif not callable(ufunc):
        raise TypeError(f"`ufunc` expected an element-wise function of two operands, got {show(ufunc)}")


def _check_out(out: Any, shape: Shape) -> None:
    """Refuse an `out` of another shape: a ufunc would broadcast the result to it."""
    for each in out if isinstance(out, tuple) else (out,):
        if isinstance(each, ndarray) and shape_of(each) != shape:
            raise ValueError(f"`out` expected shape {shape}, got {shape_of(each)}")
        if not (each is None or isinstance(each, ndarray) or hasattr(each, "__array_ufunc__")):
            raise TypeError(f"`out` expected an array, got {type(each).__name__}")
