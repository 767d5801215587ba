"""Arrays whose class tells lies: what the C array holds is what counts, and not what its attributes say."""

import numpy as np
import pytest

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


F = np.arange(6.0).reshape(2, 3)
INTEGERS = np.array([5, 6, 7])
OBJECTS = np.array([[None, "text", 1]] * 2, object)

# Each with a function that makes liars of arrays, or lets them be.
CALLS = {
    "data": lambda f: bcast.broadcast(f(F), (2, 2, 3)),
    "objects": lambda f: bcast.broadcast(f(OBJECTS), (2, 2, 3)),
    "transposed": lambda f: bcast.broadcast(f(F.T), (2, 3, 2)),
    "target_shape": lambda f: bcast.broadcast(INTEGERS, f(np.array([2, 3]))),
    "axes_mapping": lambda f: bcast.broadcast(INTEGERS, (2, 3), f(np.array([1])), mode="explicit"),
    "broadcast_axes": lambda f: bcast.broadcast(INTEGERS, (2, 3), broadcast_axes=f(np.array([0])), mode="explicit"),
    "axis": lambda f: bcast.broadcast(INTEGERS, (2, 3), mode="pdpd", axis=f(np.array(1))),
    "like": lambda f: bcast.broadcast_like(f(INTEGERS), f(F)),
    "shape": lambda f: bcast.broadcast_to(f(F), f(np.array([2, 2, 3]))),
    "shape_of_one_axis": lambda f: bcast.broadcast_to(5, f(np.array([3]))),
    "data_shape": lambda f: bcast.infer_shape(f(np.array([3])), f(np.array([2, 3]))),
    "args": lambda f: bcast.broadcast_arrays(f(F), f(INTEGERS)),
    "shapes": lambda f: bcast.broadcast_shapes(f(np.array([2, 1])), f(np.array(3))),
    "xi": lambda f: bcast.meshgrid(f(INTEGERS), f(F)),
    "tile": lambda f: bcast.tile(f(F), 2),
    "reps": lambda f: bcast.tile(INTEGERS, f(np.array([2, 2]))),
    "repeat": lambda f: bcast.repeat(f(F), 2, 1),
    "repeats": lambda f: bcast.repeat(f(INTEGERS), f(np.array([1, 0, 2]))),
    "repeats_of_floats": lambda f: bcast.repeat(f(INTEGERS), f(np.array([1.0, 0.0, 2.0]))),
    "repeats_along_axes": lambda f: bcast.repeat(f(F), f(np.array([1, 2])), f(np.array([0, 1]))),
    "repeats_along_an_axis": lambda f: bcast.repeat(f(F), 2, f(np.array(1))),
    "grad": lambda f: bcast.unbroadcast(f(F), f(np.array([3]))),
    "grad_of_objects": lambda f: bcast.unbroadcast(f(np.array([[1, 2], [3, 4]], object)), (2,)),
    "grad_of_integers": lambda f: bcast.unbroadcast(f(INTEGERS), (), dtype=float),
    "operands": lambda f: bcast.elementwise(np.add, f(F), f(INTEGERS)),
    "out": lambda f: bcast.broadcast(F, (2, 2, 3), out=f(np.zeros((2, 2, 3)))),
    "strided_out": lambda f: bcast.broadcast(F, (2, 2, 3), out=f(np.zeros((2, 2, 6))[..., ::2])),
    "out_of_sums": lambda f: bcast.unbroadcast(F, (3,), out=f(np.zeros(3))),
    "complex_out_of_sums": lambda f: bcast.unbroadcast(F, (3,), dtype=complex, out=f(np.ones(3, complex))),
    "real_out_of_sums": lambda f: bcast.unbroadcast(F.astype(int), (3,), dtype="f4", out=f(np.zeros(3, "f4"))),
    "out_of_repeat": lambda f: bcast.repeat(F, [1, 2], 0, out=f(np.zeros((3, 3)))),
    "out_of_a_ufunc": lambda f: bcast.elementwise(np.add, F, INTEGERS, out=f(np.zeros((2, 3)))),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_what_the_array_holds_counts(call):
    results, expected = call(lying), call(lambda array: array)
    if not isinstance(expected, tuple):
        results, expected = [results], [expected]
    for result, own in zip(results, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(result), own, strict=True)


# What `out` says of itself fits, and what it is does not.
REFUSED = {
    "dtype": (lambda out: bcast.broadcast(np.float32(1), (7,), out=out), TypeError, (7,), "i4", Liar),
    "dtype_of_a_sum": (
        lambda out: bcast.unbroadcast(np.ones((2, 7), "f4"), (7,), out=out),
        TypeError,
        (7,),
        "i4",
        Liar,
    ),
    "dtype_of_a_tile": (lambda out: bcast.tile(np.ones(1, "f4"), 7, out=out), TypeError, (7,), "i4", Liar),
    "references": (lambda out: bcast.repeat(OBJECTS, 1, 0, out=out), TypeError, (2, 3), "i8", LiarOfReferences),
    "shape": (lambda out: bcast.broadcast(np.float32(1), (7,), out=out), ValueError, (2, 3), "f4", Liar),
    "shape_of_a_ufunc": (lambda out: bcast.elementwise(np.add, np.ones(7), 1, out=out), ValueError, (2, 3), "f8", Liar),
}


@pytest.mark.parametrize(("call", "error", "shape", "dtype", "kind"), REFUSED.values(), ids=REFUSED)
def test_out_is_what_it_is(call, error, shape, dtype, kind):
    out = np.zeros(shape, dtype)
    with pytest.raises(error, match=r"^`out` expected "):
        call(lying(out, kind))
    assert not out.any()


def test_an_operand_that_reshapes_itself_wrongly():
    with pytest.raises(ValueError, match=r"^`b` expected an array that can be reshaped to \(2, 1\), got Liar$"):
        bcast.elementwise(np.add, F, lying(np.array([1.0, 2.0])), mode="pdpd", axis=0)
