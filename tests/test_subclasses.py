"""Arrays whose class has wrong attributes: the fields of the C array count, not the attributes."""

import numpy as np
import pytest
from _calls import OF_ARRAYS, check

import bcast


class Liar(np.ndarray):
    """Its memory is as that of any array, and all that it says of it is wrong."""

    dtype = np.dtype("f4")
    shape = (7,)
    strides = (4,)
    ndim = size = itemsize = nbytes = 1
    flags = base = data = T = real = imag = None

    def wrong(self, *_, **__):
        return np.zeros(7)

    astype = copy = flatten = ravel = repeat = reshape = squeeze = sum = transpose = view = __array__ = wrong

    def seven(self, *_):
        return 7

    __getitem__ = __index__ = __int__ = __len__ = item = seven

    def __iter__(self):
        return iter([7])

    def tolist(self):
        return [7]

    def __repr__(self):
        return "a liar"


class LiarOfReferences(Liar):
    dtype = np.dtype(object)


def lying(array, kind=Liar):
    return np.ndarray.view(array, kind)


# NumPy's functions have what the class says, as these have.
REDUCTIONS = ("sum:", "mean:", "mean_std:", "var:", "std:", "max:", "min:", "minmax:", "any:", "all:", "prod:")
REDUCTIONS += ("argmax:", "argmin:", "vecdot:", "matvec:", "cross:", "norm:", "stack:", "nan")  # which hand classes on
REDUCTIONS += ("chain: reduced", "chain_memory:", "chain_vjp:")
OF_CLASSES = {name for name in OF_ARRAYS if name.startswith(REDUCTIONS)}
LEFT_OUT = {"elementwise: pdpd", "chain: into bytes, saturated"}  # where classes reshape; what is refused for them
F = np.arange(6.0).reshape(2, 3)
OBJECTS = np.array([[None, "text", 1]] * 2, object)


def lie(value):
    """Make liars of arrays, and of integers and lists, which may be arrays, too."""
    if type(value) is tuple and value and all(type(item) is np.ndarray for item in value):
        return tuple(map(lying, value))
    if type(value) is tuple and value and isinstance(value[0], np.ufunc):
        return value[0], lying(value[1]) if type(value[1]) is np.ndarray else value[1]
    items = value if type(value) in (tuple, list) and value else [value]
    if all(type(item) is int and abs(item) < 1 << 63 for item in items):
        return lying(np.array(value))
    return lying(value) if type(value) is np.ndarray else value


def honest(result):
    if isinstance(result, tuple):
        return tuple(map(honest, result))
    return np.asarray(result) if isinstance(result, Liar) else result


@pytest.mark.parametrize("name", sorted(OF_ARRAYS.keys() - LEFT_OUT - OF_CLASSES))
def test_fields_of_the_array_count(name):
    function, make = OF_ARRAYS[name]
    call = make()
    # A number's dtype is weaker than an array's.
    args = [arg if type(arg) is int and function is bcast.where else lie(arg) for arg in call.args]
    kwargs = {
        name: value if name == "times" and type(value) is int else lie(value) for name, value in call.kwargs.items()
    }
    check(lambda *args, **kwargs: honest(function(*args, **kwargs)), call, args, kwargs)


# What `out` says of itself fits, and what it is does not.
REFUSED = {
    "dtype": (lambda out: bcast.broadcast(np.float32(1), (7,), out=out), TypeError, (7,), "i4", Liar),
    "dtype_of_sums": (lambda out: bcast.unbroadcast(np.ones((2, 7), "f4"), (7,), out=out), TypeError, (7,), "i4", Liar),
    "dtype_of_a_tile": (lambda out: bcast.tile(np.ones(1, "f4"), 7, out=out), TypeError, (7,), "i4", Liar),
    "references": (lambda out: bcast.repeat(OBJECTS, 1, 0, out=out), TypeError, (2, 3), "i8", LiarOfReferences),
    "shape": (lambda out: bcast.broadcast(np.float32(1), (7,), out=out), ValueError, (2, 3), "f4", Liar),
    "shape_of_a_ufunc": (lambda out: bcast.elementwise(np.add, np.ones(7), 1, out=out), ValueError, (2, 3), "f8", Liar),
    "shape_of_a_chain": (lambda out: bcast.chain(np.ones(7), (np.add, 1), out=out), ValueError, (2, 3), "f8", Liar),
    "dtype_of_a_chain": (lambda out: bcast.chain(np.ones(7, "f4"), np.sqrt, out=out), TypeError, (7,), "i4", Liar),
}


@pytest.mark.parametrize(("call", "error", "shape", "dtype", "kind"), REFUSED.values(), ids=REFUSED)
def test_out_is_checked_by_its_fields(call, error, shape, dtype, kind):
    out = np.zeros(shape, dtype)
    with pytest.raises(error, match=r"^`out` expected "):
        call(lying(out, kind))
    assert not out.any()


def test_an_operand_that_reshapes_itself_wrongly():
    with pytest.raises(ValueError, match=r"^`b` expected an array that can be reshaped to \(2, 1\), got Liar$"):
        bcast.elementwise(np.add, F, lying(np.array([1.0, 2.0])), mode="pdpd", axis=0)
