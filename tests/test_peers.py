"""Other systems as oracles: calls that work there have the same results here, and calls that fail there fail here.

Shapes are drawn at random from a fixed seed, similar enough that many of them fit. Each test requires a least number of
cases with results and of refused cases, so that no test passes without comparisons.
"""

import functools
from typing import NamedTuple

import numpy as np
import pytest
from test_docs import loaded as peer

import bcast

pytestmark = pytest.mark.peers

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float16", "float32", "float64"]


def related_shapes(rng, data_rank, target_rank):
    """Two shapes cut from one, each with some lengths made 1; every other time one length is changed at random."""
    whole = rng.choice([0, 2, 3, 4], max(data_rank, target_rank), p=[0.1, 0.3, 0.3, 0.3])
    shapes = [np.where(rng.random(rank) < 0.3, 1, whole[len(whole) - rank :]) for rank in (data_rank, target_rank)]
    changed = shapes[rng.integers(2)]
    if len(changed) and rng.random() < 0.5:
        changed[rng.integers(len(changed))] = rng.choice([0, 2, 3, 4, 5])
    return [tuple(shape.tolist()) for shape in shapes]


def mapped_shapes(rng, data_rank, target_rank):
    """Data's shape, a target and an axes mapping; every other time one of the three is changed at random."""
    target = rng.choice([0, 1, 2, 3, 4], target_rank, p=[0.05, 0.15, 0.3, 0.3, 0.2])
    axes = np.sort(rng.choice(target_rank, data_rank, replace=False))
    data = np.where(rng.random(data_rank) < 0.3, 1, target[axes])
    change = rng.integers(10)
    if change == 0 and target_rank:
        axes = np.append(axes, rng.integers(target_rank))
    elif change == 1:
        axes = axes[:-1]
    elif change == 2 and data_rank:
        axes[rng.integers(data_rank)] = rng.integers(-1, target_rank + 1)
    elif change == 3 and data_rank:
        data[rng.integers(data_rank)] = rng.integers(5)
    elif change == 4:
        axes = rng.permutation(axes)
    return [tuple(integers.tolist()) for integers in (data, target, axes)]


def values(rng, shape, dtype):
    """Values that are exact in every dtype, also where a system computes in a narrower one than it is given."""
    return rng.integers(0, 100, shape).astype(dtype)


def outcome(call, case, refusals):
    """The result of a call, and the error if it has no result."""
    try:
        return call(*case), None
    except refusals as refusal:
        return None, refusal


def assert_agreement(theirs, ours, cases, refusals, *, at_least):
    """Assert of each case that both give the same, value, dtype and shape, or both refuse it."""
    given = refused = 0
    for case in cases:
        expected, their_refusal = outcome(theirs, case, refusals)
        result, our_refusal = outcome(ours, case, ValueError)
        where = [item.shape if isinstance(item, np.ndarray) else item for item in case]
        assert (our_refusal is None) == (their_refusal is None), f"{where}: {our_refusal!r}, the peer {their_refusal!r}"
        if their_refusal is None:
            np.testing.assert_array_equal(result, expected, strict=True, err_msg=str(where))
            given += 1
        else:
            refused += 1
    assert min(given, refused) >= at_least, (given, refused)


def expand_cases(seed, dtype, count):
    """Shapes of any two ranks up to 5; sometimes a length of -1, which exporters write and all must refuse."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        shape, target = related_shapes(rng, rng.integers(6), rng.integers(6))
        if target and rng.random() < 0.1:
            target = (*target[:-1], -1)
        yield values(rng, shape, dtype), target


@pytest.mark.parametrize("dtype", ["bool", *INTEGERS, *FLOATS, "bfloat16", "complex64", "complex128"])
def test_onnx_reference_expand(dtype):
    from test_onnx import model  # which skips the test without onnx

    dtype = np.dtype(peer("ml_dtypes").bfloat16 if dtype == "bfloat16" else dtype)
    evaluator = peer("onnx.reference").ReferenceEvaluator(model("Expand", 2, opset=13))

    def expand(data, target):
        return evaluator.run(None, {"x0": data, "x1": np.array(target, np.int64)})[0]

    ours = functools.partial(bcast.broadcast, mode="bidirectional")
    assert_agreement(expand, ours, expand_cases(1, dtype, 100), ValueError, at_least=15)


# How OpenVINO spells each mode. PDPD is a rule of its element-wise operators, with an axis that Python cannot set and
# that is 0: data is added to zeros of the target's shape. (Broadcast-1 lets PDPD through, but the CPU cannot run it.)
OPERATORS = [("numpy", "Broadcast-1"), ("explicit", "Broadcast-1"), ("pdpd", "Add-1"), ("none", "Add-1")]
OPERATORS += [(mode, "Broadcast-3") for mode in ("numpy", "explicit", "bidirectional")]


class Case(NamedTuple):
    """The facts for an exclusion. Compiled: run on the CPU. Not compiled: inferred, from constant shapes."""

    compiled: bool
    shape: tuple
    target: tuple
    axes: tuple | None


# Where OpenVINO is a wrong oracle, and what it does there.
EXCLUDED = [
    (lambda case: 0 in case.shape + case.target, "divides by 0 (SIGFPE); PDPD lets the target's 1 stretch to 0"),
    (lambda case: case.axes and len(set(case.axes)) < len(case.axes), "accepts an axis twice, reads out of bounds"),
    (lambda case: case.compiled and case.axes and len(case.target) > 6, "wrong values with more than 6 axes"),
    (lambda case: case.compiled and not case.target, "refuses a bidirectional target of no axes, or crashes"),
]


def openvino_cases(seed, mode, ranks, dtype, count, *, compiled=True):
    """Draw data, target and axes, `count` times for each pair of ranks, where OpenVINO is an oracle."""
    rng = np.random.default_rng(seed)
    for data_rank, target_rank in ranks:
        for _ in range(count):
            if mode == "explicit":
                shape, target, axes = mapped_shapes(rng, data_rank, target_rank)
            else:
                shape, target = related_shapes(rng, data_rank, target_rank)
                axes = None
            case = Case(compiled, shape, target, axes)
            if not any(excludes(case) for excludes, _ in EXCLUDED):
                yield values(rng, shape, dtype), target, axes


def openvino_node(mode, operator, data, target, axes):
    """The node over nodes; `axes` may be None."""
    if operator == "Broadcast-1":
        return peer("openvino.opset1").broadcast(data, target, axes, mode=mode.upper())
    if operator == "Broadcast-3":
        return peer("openvino.opset3").broadcast(data, target, axes, broadcast_spec=mode.upper())
    return peer("openvino.opset1").add(target, data, auto_broadcast=mode.upper())


@functools.cache
def openvino_compiled(mode, operator, dtype, data_rank, target_rank, axes_count):
    """A model whose shapes are left to the run; only ranks must be known to the CPU."""
    ov = peer("openvino")
    kind, index = ov.Type(np.dtype(dtype)), ov.Type.i64
    data = ov.op.Parameter(kind, ov.PartialShape([-1] * data_rank))
    if operator == "Add-1":
        target = ov.op.Parameter(kind, ov.PartialShape([-1] * target_rank))
    else:
        target = ov.op.Parameter(index, ov.PartialShape([target_rank]))
    axes = None if axes_count is None else ov.op.Parameter(index, ov.PartialShape([axes_count]))
    node = openvino_node(mode, operator, data, target, axes)
    parameters = [data, target] if axes is None else [data, target, axes]
    return ov.Core().compile_model(ov.Model([node], parameters), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})


def assert_openvino_agrees(mode, operator, cases, *, at_least):
    def theirs(data, target, axes):
        axes_count = None if axes is None else len(axes)
        model = openvino_compiled(mode, operator, data.dtype.name, data.ndim, len(target), axes_count)
        second = np.zeros(target, data.dtype) if operator == "Add-1" else np.array(target, np.int64)
        return model([data, second] if axes is None else [data, second, np.array(axes, np.int64)])[0]

    axis = {"axis": 0} if mode == "pdpd" else {}
    ours = functools.partial(bcast.broadcast, mode=mode, **axis)
    assert_agreement(theirs, ours, cases, RuntimeError, at_least=at_least)


# In mode "none" the CPU stretches lengths of 1 all the same.
@pytest.mark.parametrize(("mode", "operator"), [pair for pair in OPERATORS if pair[0] != "none"])
def test_openvino_compiled(mode, operator):
    peer("openvino")
    ranks = [(data, target) for target in range(5) for data in range(target + 1)] + [(2, 1), (3, 2), (2, 6), (3, 8)]
    if mode == "explicit":
        ranks = [(data, target) for data, target in ranks if data <= target]
    assert_openvino_agrees(mode, operator, openvino_cases(3, mode, ranks, "float32", 40), at_least=30)


@pytest.mark.parametrize("dtype", ["bool", *INTEGERS, *FLOATS])
@pytest.mark.parametrize(("mode", "operator"), [pair for pair in OPERATORS if pair[1] != "Add-1"])
def test_openvino_dtypes(mode, operator, dtype):
    peer("openvino")
    cases = openvino_cases(4, mode, [(2, 3)], dtype, 40)
    assert_openvino_agrees(mode, operator, cases, at_least=2)


@pytest.mark.parametrize(("mode", "operator"), OPERATORS)
def test_openvino_inferred(mode, operator):
    """Inference from constant shapes is another implementation of the same rules than the CPU's."""
    ov = peer("openvino")

    def theirs(data, target, axes):
        node = ov.op.Parameter(ov.Type.f32, ov.Shape(data.shape))
        if operator == "Add-1":
            second = ov.op.Parameter(ov.Type.f32, ov.Shape(target))
        else:
            second = ov.op.Constant(np.array(target, np.int64))
        third = None if axes is None else ov.op.Constant(np.array(axes, np.int64))
        return tuple(openvino_node(mode, operator, node, second, third).get_output_shape(0))

    def ours(data, target, axes):
        axis = {"axis": 0} if mode == "pdpd" else {}
        return bcast.infer_shape(data.shape, target, axes, mode=mode, **axis)

    ranks = [(data, target) for target in range(6) for data in range(target + 1)]
    cases = openvino_cases(5, mode, ranks, "float32", 30, compiled=False)
    assert_agreement(theirs, ours, cases, RuntimeError, at_least=30)


def jax_cases(seed, count):
    rng = np.random.default_rng(seed)
    dtypes = [np.dtype(name) for name in ("bool", "int8", "uint16", "int32", "float16", "float32", "complex64")]
    dtypes.append(np.dtype(peer("ml_dtypes").bfloat16))
    for i in range(count):
        target_rank = rng.integers(6)
        shape, target, axes = mapped_shapes(rng, rng.integers(target_rank + 1), target_rank)
        # Only OpenVINO takes an axis for a scalar, if the output has length 1 there; only jax transposes.
        if (shape or not axes) and list(axes) == sorted(axes):
            yield values(rng, shape, dtypes[i % len(dtypes)]), target, axes


def test_jax_broadcast_in_dim():
    jax = peer("jax")

    def theirs(data, target, axes):
        return np.asarray(jax.lax.broadcast_in_dim(data, target, axes))

    ours = functools.partial(bcast.broadcast, mode="explicit")
    assert_agreement(theirs, ours, jax_cases(6, 300), TypeError, at_least=30)


def gradient_cases(rng, count):
    """Draw a gradient, the shape of the data and, for jax alone, the axes it fed."""
    given = 0
    while given < count:
        target_rank = int(rng.integers(6))
        shape, target, axes = mapped_shapes(rng, int(rng.integers(target_rank + 1)), target_rank)
        try:
            bcast.infer_shape(shape, target, axes, mode="explicit")
        except ValueError:
            continue
        if shape or not axes:  # only OpenVINO takes an axis for a scalar
            given += 1
            yield rng.integers(-9, 10, target), shape, axes


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "complex64"])
def test_jax_gradient_of_broadcast_in_dim(name):
    jax = peer("jax")
    dtype = np.dtype(peer("ml_dtypes").bfloat16 if name == "bfloat16" else name)
    for numbers, shape, axes in gradient_cases(np.random.default_rng(7), 60):
        grad = numbers.astype(dtype)

        def stretched(data, target=grad.shape, axes=axes):
            return jax.lax.broadcast_in_dim(data, target, axes)

        _, backwards = jax.vjp(stretched, jax.numpy.zeros(shape, dtype))
        (expected,) = backwards(jax.numpy.asarray(grad))
        result = bcast.unbroadcast(grad, shape, axes, mode="explicit")
        np.testing.assert_array_equal(result, np.asarray(expected), strict=True, err_msg=f"{shape} {grad.shape} {axes}")


@pytest.mark.parametrize("name", ["float16", "float32", "float64", "complex128"])
def test_torch_gradient_of_expand(name):
    torch = peer("torch")
    dtype = np.dtype(name)
    cases = 0
    for numbers, shape, axes in gradient_cases(np.random.default_rng(8), 300):
        if list(axes) != list(range(numbers.ndim - len(shape), numbers.ndim)):
            continue
        cases += 1
        grad = numbers.astype(dtype)
        data = torch.zeros(shape, dtype=getattr(torch, name), requires_grad=True)
        data.expand(grad.shape).backward(torch.from_numpy(grad))
        result = bcast.unbroadcast(grad, shape)
        np.testing.assert_array_equal(result, data.grad.numpy(), strict=True, err_msg=f"{shape} {grad.shape}")
    assert cases >= 30
