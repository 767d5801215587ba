"""Other systems as oracles of the element-wise rules: onnxruntime for `bcast.onnx`, OpenVINO for `elementwise`.

Drawn shapes are similar enough that many of them fit. Each test requires a least number of cases with results and of
refused cases, so that no test passes without comparisons.
"""

import functools
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bcast

pytestmark = pytest.mark.peers

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of other packages, while they are imported
    try:
        import onnx
        import onnxruntime
        from onnx.reference import ReferenceEvaluator
        from onnxruntime.capi import onnxruntime_pybind11_state as errors

        import bcast.onnx
    except ModuleNotFoundError:
        onnxruntime = None
    try:
        import openvino
        from openvino.utils.node_factory import NodeFactory
    except ModuleNotFoundError:
        openvino = None

FLOATS = ("float16", "float32", "float64")
# Each operator, and the types that onnxruntime has kernels for of those that ONNX allows; of Pow, base and exponent.
TYPES = {
    **dict.fromkeys(("Add", "Sub", "Mul", "Div"), ("float16", "float32", "float64", "int8", "int32", "int64", "uint8")),
    **dict.fromkeys(("And", "Or", "Xor"), ("bool",)),
    "Equal": ("bool", "int32", "int64", "float32", "float64", "object"),
    **dict.fromkeys(("Greater", "Less"), ("int32", "int64", "float32", "float64")),
    **dict.fromkeys(("Max", "Min"), ("int8", "int32", "int64", "uint8", "uint32", "uint64", *FLOATS)),
    "Mean": ("float32",),
    "Sum": ("float32", "float64"),
    "Where": ("uint8", "int32", "int64", "float32", "float64", "object"),
    "Pow": ("int32 int32", "int64 int32", "int32 float32", "float32 int64", "float32 float64", "float64 float32"),
    "Expand": ("bool", "object", *[f"{kind}{8 << i}" for kind in ("int", "uint") for i in range(4)], *FLOATS),
    "Gemm": ("float32", "float64"),
    "PRelu": ("float32",),
}
ALL = [(operator, dtype) for operator, dtypes in TYPES.items() for dtype in dtypes]
VARIADIC = {"Max", "Mean", "Min", "Sum"}
LENGTHS = st.sampled_from([2, 3, 4, 5, 1, 0])
CHANGES = st.sampled_from([6, 7, 2, 1, 0])
wholes = st.one_of([st.lists(LENGTHS, min_size=rank, max_size=rank) for rank in (2, 3, 4, 1, 0)])


def search(prop, *, examples, at_least, **drawn):
    """Run the property over some examples, the same ones each time; it counts them in the tally that it is handed."""
    tally = SimpleNamespace(given=0, refused=0)

    @settings(max_examples=examples, deadline=None, derandomize=True, database=None)
    @given(**drawn)
    def run(**case):
        prop(tally, **case)

    run()
    assert min(tally.given, tally.refused) >= at_least, vars(tally)


@st.composite
def cut(draw, whole, *, entire=False):
    """Return the end of a shape, or the entire one, with some of its lengths made 1."""
    kept = len(whole) if entire else len(whole) - draw(st.sampled_from([0, 0, 0, 1, 2, 4]))
    return [1 if draw(st.integers(0, 3)) == 3 else length for length in whole[len(whole) - max(kept, 0) :]]


@st.composite
def changed(draw, shapes, lengths):
    """Return the shapes; every other time one length of theirs is drawn anew."""
    axes = [(shape, i) for shape in shapes for i in range(len(shape))]
    if axes and draw(st.booleans()):
        shape, i = draw(st.sampled_from(axes))
        shape[i] = draw(lengths)
    return [tuple(shape) for shape in shapes]


@st.composite
def operands(draw, operator):
    if operator == "Gemm":
        m, k, n = draw(st.tuples(*[st.integers(1, 4)] * 3))
        return draw(changed([[k, m], [k, n], draw(cut([m, n]))], CHANGES))
    whole = draw(wholes)
    if operator == "PRelu":
        return draw(changed([whole, draw(cut(whole))], CHANGES))
    count = draw(st.integers(2, 4)) if operator in VARIADIC else 3 if operator == "Where" else 2
    return draw(changed([draw(cut(whole)) for _ in range(count)], CHANGES))


def values(rng, operator, position, shape, dtype):
    """Values whose results are exact in all dtypes and defined in all systems: none is divided by 0."""
    dtype = dtype.split()[min(position, dtype.count(" "))]
    if operator == "Where" and position == 0:
        dtype = "bool"
    if dtype == "object":
        array = np.array(["", "a", "bc"], object)[rng.integers(3, size=shape)]
        return np.asarray(array, object)
    least = 0 if np.dtype(dtype).kind in "bu" else -5
    if operator in ("Div", "Pow") and position == 1:
        least = 1
    return np.asarray(rng.integers(least, 2 if dtype == "bool" else 6, shape).astype(dtype))


ATTRIBUTES = {"Gemm": {"alpha": 0.5, "beta": 2.0, "transA": 1}}


@functools.cache
def model(operator, kinds):
    """A model of one node, its shapes left to the run."""
    node = onnx.helper.make_node(operator, [f"x{i}" for i in range(len(kinds))], ["y"], **ATTRIBUTES.get(operator, {}))
    inputs = [onnx.helper.make_tensor_value_info(f"x{i}", kind, None) for i, kind in enumerate(kinds)]
    compares = operator in ("Equal", "Greater", "Less")
    kind = onnx.TensorProto.BOOL if compares else kinds[operator == "Where"]
    graph = onnx.helper.make_graph([node], operator, inputs, [onnx.helper.make_tensor_value_info("y", kind, None)])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 19)], ir_version=8)


@functools.cache
def sessions(operator, kinds):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # refusals are wanted here: keep them out of the log
    options.intra_op_num_threads = 1
    serialised = model(operator, kinds).SerializeToString()
    return (
        onnxruntime.InferenceSession(serialised, options, providers=["CPUExecutionProvider"]),
        ReferenceEvaluator(model(operator, kinds), new_ops=bcast.onnx.OPS),
    )


def outcome(call, feed, refusals):
    try:
        return np.asarray(call(None, feed)[0])
    except refusals:
        return None


@pytest.mark.skipif(onnxruntime is None, reason="needs onnxruntime and onnx")
@pytest.mark.parametrize(("operator", "dtype"), ALL)
def test_onnxruntime(operator, dtype):
    def prop(tally, shapes, seed):
        rng = np.random.default_rng(seed)
        arrays = [values(rng, operator, i, shape, dtype) for i, shape in enumerate(shapes)]
        if operator == "Expand":
            unknown = seed % 8 == 0 and dtype != "object"  # the peer returns an array with a length of -1
            arrays[1] = np.array((*shapes[1][:-1], -1) if unknown else shapes[1], np.int64)
        kinds = [
            onnx.TensorProto.STRING if a.dtype.kind == "O" else onnx.helper.np_dtype_to_tensor_dtype(a.dtype)
            for a in arrays
        ]
        theirs, ours = sessions(operator, tuple(kinds))
        feed = {f"x{i}": array for i, array in enumerate(arrays)}
        result = outcome(ours.run, feed, ValueError)
        expected = outcome(theirs.run, feed, (errors.InvalidArgument, errors.Fail, errors.RuntimeException))
        if operator == "PRelu" and expected is not None and expected.shape != shapes[0]:
            expected = None  # it lets x stretch to the slope, which the page rules out
        assert (result is None) == (expected is None), f"{shapes}: {result!r}, onnxruntime {expected!r}"
        if result is None:
            tally.refused += 1
        else:
            compare = np.testing.assert_array_equal
            if operator == "Mean":  # it multiplies by the inverse of the number of inputs
                compare = functools.partial(np.testing.assert_allclose, rtol=3e-7)
            compare(result, expected, strict=True, err_msg=str(shapes))
            tally.given += 1

    search(prop, examples=40, at_least=3, shapes=operands(operator), seed=st.integers(0, 2**32 - 1))


@functools.cache
def openvino_add(rule, axis, a_rank, b_rank):
    """A model of an addition whose shapes are left to the run; only ranks must be known to the CPU."""
    shapes = [openvino.PartialShape([-1] * rank) for rank in (a_rank, b_rank)]
    parameters = [openvino.op.Parameter(openvino.Type.f32, shape) for shape in shapes]
    node = openvino_node(rule, axis, parameters)
    return openvino.Core().compile_model(openvino.Model([node], parameters), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})


def openvino_node(rule, axis, parameters):
    """The node. That of `openvino.opset1.add` has no axis."""
    attributes = {"auto_broadcast": rule}
    if rule == "PDPD":
        attributes["auto_broadcast.auto_broadcast_axis"] = axis
    node = NodeFactory("opset1").create("Add", [parameter.output(0) for parameter in parameters], attributes)
    assert rule != "PDPD" or node.get_attributes()["auto_broadcast.auto_broadcast_axis"] == axis
    return node


def compiled(rule, axis, a, b):
    return openvino_add(rule, axis, a.ndim, b.ndim)([a, b])[0]


def inferred(rule, axis, a, b):
    """From constant shapes: another implementation of the same rules than the CPU's."""
    parameters = [openvino.op.Parameter(openvino.Type.f32, openvino.Shape(array.shape)) for array in (a, b)]
    return tuple(openvino_node(rule, axis, parameters).get_output_shape(0))


@st.composite
def additions(draw, rule):
    """Shapes without axes of length 0, at which OpenVINO divides, and an axis."""
    lengths, changes = st.sampled_from([2, 3, 4, 1]), st.sampled_from([6, 7, 2, 1])
    rank = draw(st.sampled_from([3, 4, 2, 1, 0]))
    a = draw(st.lists(lengths, min_size=rank, max_size=rank))
    if rule == "NUMPY":
        return *draw(changed([draw(cut(a)), draw(cut(a))], changes)), -1
    start = draw(st.integers(0, rank))
    end = draw(st.integers(start, rank))
    axis = draw(st.sampled_from([start, start, start, -1, 0, 1, 2, 3, 4]))
    return *draw(changed([a, draw(cut(a[start:end], entire=True))], changes)), axis


def pdpd_is_followed(a, b, axis):
    """Return whether OpenVINO follows its own page: it refuses trailing 1s of `b` beyond `a`'s last axis."""
    start = len(a) - len(b) if axis == -1 else axis
    return start + len(b) <= len(a)


@pytest.mark.skipif(openvino is None, reason="needs openvino")
@pytest.mark.parametrize("theirs", [compiled, inferred])
@pytest.mark.parametrize("rule", ["NUMPY", "PDPD"])
def test_add_agrees_with_openvino(rule, theirs):
    def prop(tally, case, seed):
        *shapes, axis = case
        rng = np.random.default_rng(seed)
        a, b = [np.asarray(rng.integers(0, 100, shape), np.float32) for shape in shapes]
        try:
            expected = theirs(rule, axis, a, b)
        except RuntimeError:
            expected = None
        try:
            result = bcast.elementwise(np.add, a, b, mode=rule.lower(), axis=axis)
        except ValueError:
            result = None
        if rule == "PDPD" and not pdpd_is_followed(*shapes, axis):
            return
        assert (result is None) == (expected is None), f"{case}: {result!r}, openvino {expected!r}"
        if result is None:
            tally.refused += 1
        elif theirs is inferred:
            assert expected == np.shape(result)
            tally.given += 1
        else:
            np.testing.assert_array_equal(np.asarray(result), expected, strict=True, err_msg=str(case))
            tally.given += 1

    search(prop, examples=150, at_least=3, case=additions(rule), seed=st.integers(0, 2**32 - 1))
