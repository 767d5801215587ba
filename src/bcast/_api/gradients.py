"""`chain_vjp`: a chain's result, and the function that takes a gradient back through it."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bcast._api.chains.backward import Backward
from bcast._api.chains.derivatives import DERIVATIVES, REDUCED, is_float
from bcast._api.chains.folds import is_fold
from bcast._api.chains.stages import Stage, parts_of, plan_stages
from bcast._api.converted import as_operand
from bcast._api.elementwise import chain, plain_data, read_chain, with_ufuncs
from bcast._rules.arguments import Shape, brief, show
from bcast._rules.types import DType, ElementwiseMode

NUMBERS = (bool, int, float, complex)
Vjp = Callable[[ArrayLike], tuple[NDArray[Any], ...]]


def chain_vjp(
    data: ArrayLike, *steps: Any, dtype: DType = None, mode: ElementwiseMode | None = None, axis: int = -1
) -> tuple[Any, Vjp]:
    """Run a chain; return its result, and a function that propagates a gradient back (its vector-Jacobian product).

    Parameters
    ----------
    data, *steps, dtype, mode, axis
        As in `chain`. The data, and arrays among the operands, must be floating-point; the data may be integers if
        `dtype` converts them. Functions are `numpy.add`, `subtract`, `multiply`, `divide`, `negative`, `square`,
        `sqrt`, `reciprocal`, `absolute`, `exp`, `log`, `maximum` and `minimum`. Reductions are `sum`, `mean`, `max`,
        `min` and `prod`.

    Returns
    -------
    value : ndarray or scalar
        The result of `chain`.
    vjp : callable
        A function of one argument: the gradient with respect to `value`, in the shape of `value`. It returns a tuple:
        the gradient with respect to `data`, then one for each operand that is an array or list, in the order of the
        steps. Python numbers are constants. Each gradient has the shape and dtype of its operand; for integers,
        `dtype`.

    Raises
    ------
    ValueError, TypeError, numpy.exceptions.AxisError
        As in `chain`. Also `TypeError` for a step without a derivative, for numbers other than floats, and for classes
        that override NumPy. `vjp` raises `ValueError` for a gradient of another shape.

    See Also
    --------
    unbroadcast : The adjoint of `broadcast`, which sums the gradients.

    Notes
    -----
    The interface follows JAX and torch.func: ``value, vjp = jax.vjp(function, *arrays)``.

    You may call `vjp` several times. It keeps no values. Instead, it reads the data and operands again, which must not
    have changed, and computes the chain again, block by block. It makes no array of the broadcast's size. It needs
    memory for the gradients (twice, in higher precision, if several blocks contribute to them), and at most 4 MB for
    each step, plus 16 MB. Sums along broadcasts are as accurate as in `unbroadcast`, over all blocks. Gradients of
    float16 and bfloat16 are computed in float32 and rounded at the end.

    If the derivative is not unique, gradients follow JAX and autograd: equal operands of `maximum` and `minimum`
    each get half of the gradient, and items that share the extreme of a reduction get equal parts. The derivative of
    `absolute` at 0 is 0, as in autograd; for `sqrt`, it is infinite. If the extreme of a reduction is NaN,
    all its items get NaN; if the extreme of two operands is NaN, both get 0. The derivative of a product is correct
    even if factors are 0. `vjp` reports no floating-point errors.

    Examples
    --------
    The sum of squared distances of points to each of two centres, and its gradient with respect to the centres:

    >>> import numpy as np
    >>> import bcast
    >>> points = np.array([[0.0, 0.0], [3.0, 4.0], [8.0, 6.0]])
    >>> centres = np.array([[0.0, 1.0], [6.0, 8.0]])
    >>> steps = (np.subtract, centres), np.square, (np.sum, (0, 2))
    >>> value, vjp = bcast.chain_vjp(points[:, np.newaxis], *steps)
    >>> value
    array([108., 133.])
    >>> of_points, of_centres = vjp(np.ones(2))
    >>> of_centres
    array([[-22., -14.],
           [ 14.,  28.]])
    >>> of_points.shape
    (3, 1, 2)
    """
    own_steps = tuple(_with_array(f"steps[{i}]", step) for i, step in enumerate(with_ufuncs(steps)))
    call = read_chain(own_steps, dtype, "same_kind", mode, axis)
    array, own = call.first_conversion(plain_data(data, own_steps))

    stages = plan_stages(array, own, own_steps, call.plain_step)
    _expect_floats("data", own, "; use dtype=np.float64")
    _check_steps(stages)

    shapes = [np.shape(array), *_shapes_of_operands(own_steps)]
    value = chain(array, *own_steps, dtype=dtype, mode=mode, axis=axis)

    def vjp(gradient: ArrayLike) -> tuple[NDArray[Any], ...]:
        """Return the gradients of data and operands, given the gradient of the value."""
        given = _gradient_of(gradient, stages[-1])
        backward = Backward(array, None if dtype is None else own, stages, call.run)
        pairs = zip(backward.gradients(given), shapes, strict=True)
        return tuple(found.reshape(shape) for found, shape in pairs)

    return value, vjp


def _with_array(name: str, step: Any) -> Any:
    """Return a step whose operand is an array or a Python number; return other steps unchanged."""
    is_pair = isinstance(step, (tuple, list)) and len(step) == 2 and not is_fold(step)
    if not is_pair or type(step[1]) in NUMBERS or step[1] is None:
        return step
    return step[0], as_operand(name, step[1])


def _shapes_of_operands(steps: tuple[Any, ...]) -> list[Shape]:
    """Return the shapes of the user's arrays among operands."""
    operands = [operand for step in steps if not is_fold(step) for operand in parts_of(step)[1]]
    return [operand.shape for operand in operands if isinstance(operand, np.ndarray)]


def _check_steps(stages: list[Stage]) -> None:
    """Refuse steps that have no derivative, and operands other than floats."""
    for stage in stages:
        for i, step in enumerate(stage.steps, stage.first):
            function, operands = parts_of(step)
            if function not in DERIVATIVES:
                names = ", ".join(sorted(each.__name__ for each in DERIVATIVES))
                raise TypeError(f"`steps[{i}]` expected a function that has a gradient, of {names}, got {show(step)}")
            second = operands[0] if operands else None
            if isinstance(second, np.ndarray):
                _expect_floats(f"steps[{i}]", second.dtype, "; convert them, or use a Python number")
            elif isinstance(second, complex):
                raise TypeError(f"`steps[{i}]` expected floating-point numbers, got {show(second)}")
        if stage.fold is not None:
            place, name = f"steps[{stage.first + len(stage.steps)}]", stage.fold.name
            if name not in REDUCED:
                names = ", ".join(REDUCED)
                raise TypeError(f"`{place}` expected a reduction that has a gradient, of {names}, got {name}")
            _expect_floats(place, stage.fold.result, "; leave out its dtype")


def _expect_floats(name: str, dtype: np.dtype[Any], remedy: str) -> None:
    """Refuse numbers that have no gradient."""
    if not is_float(dtype):
        raise TypeError(f"`{name}` expected floating-point numbers, got {brief(dtype)}{remedy}")


def _gradient_of(value: ArrayLike, last: Stage) -> NDArray[Any]:
    """Return the gradient of a chain's value as an array of its shape and dtype."""
    gradient = as_operand("gradient", value)
    if np.shape(gradient) != last.shape:
        raise ValueError(f"`gradient` expected shape {last.shape}, that of the value, got {np.shape(gradient)}")
    if gradient.dtype.kind not in "biu" and not is_float(gradient.dtype):
        raise TypeError(f"`gradient` expected real numbers, got {brief(gradient.dtype)}")
    converted: NDArray[Any] = gradient.astype(last.dtype, copy=False)
    return converted
