"""ONNX's operators in its reference evaluator: the tests that come with onnx, and what these do not ask."""

import functools
import importlib
import itertools
import subprocess
import sys
import warnings

import numpy as np
import pytest

peers = pytest.mark.peers

NAMES = [
    *("Add", "And", "Div", "Equal", "Greater", "Less", "Max", "Mean", "Min", "Mul", "Or", "Pow", "Sub", "Sum", "Where"),
    *("Xor", "Gemm", "PRelu", "Expand", "Tile"),
]

# Official tests that cannot pass; each fails in the evaluator without our operators as well.
EXCLUDED = {
    "test_bernoulli_expanded": "random numbers",
    "test_bernoulli_double_expanded": "random numbers",
    "test_bernoulli_seed_expanded": "random numbers, of no generator that onnx names",
    "test_range_float_type_positive_delta_expanded": "the evaluator's Loop keeps an axis too many",
    "test_range_float16_type_positive_delta_expanded": "the evaluator's Loop keeps an axis too many",
    "test_range_bfloat16_type_positive_delta_expanded": "the evaluator's Loop keeps an axis too many",
    "test_range_int32_type_negative_delta_expanded": "the evaluator's Loop keeps an axis too many",
    "test_scan_sum": "the evaluator has no Scan of version 8",
}


@functools.cache
def modules():
    """Import what is tested, or skip; what onnx warns of meanwhile is not ours to mend."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        onnx = pytest.importorskip("onnx")
        importlib.import_module("onnx.reference")
        return onnx, importlib.import_module("bcast.onnx")


@functools.cache
def official_cases():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        modules()
        from onnx.backend.test.case.node import collect_testcases

        return collect_testcases(None)


def operators(graph):
    for node in graph.node:
        yield node.op_type
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from operators(attribute.g)


def as_array(value):
    return modules()[0].numpy_helper.to_array(value) if hasattr(value, "data_type") else value


def check(case):
    onnx, ours = modules()
    evaluator = onnx.reference.ReferenceEvaluator(case.model, new_ops=ours.OPS)
    for inputs, outputs in case.data_sets:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the evaluator's other operators
            feeds = dict(zip(evaluator.input_names, map(as_array, inputs), strict=True))
            results = evaluator.run(None, feeds)
        for result, expected in zip(results, map(as_array, outputs), strict=True):
            for one, other in zip(*[x if isinstance(x, list) else [x] for x in (result, expected)], strict=True):
                assert (one.dtype, one.shape) == (other.dtype, other.shape), case.name
                if one.dtype.kind in "OUSb":
                    assert (one == other).all(), case.name
                else:
                    np.testing.assert_allclose(one, other, rtol=case.rtol, atol=case.atol, err_msg=case.name)


@peers
@pytest.mark.parametrize("name", NAMES)
def test_official_tests(name):
    cases = [case for case in official_cases() if [node.op_type for node in case.model.graph.node] == [name]]
    assert len(cases) >= 2
    for case in cases:
        check(case)


@peers
def test_official_tests_of_functions_and_bodies():
    """Other operators' tests whose functions or bodies are made of ours."""
    found = set()
    for case in official_cases():
        graph = case.model.graph
        if set(operators(graph)) & set(NAMES) and [node.op_type for node in graph.node][0:] not in [[n] for n in NAMES]:
            found.add(case.name)
            if case.name not in EXCLUDED:
                check(case)
    assert len(found) >= 300
    assert set(EXCLUDED) <= found


@peers
def test_ops_are_the_page_s():
    _, ours = modules()
    assert sorted(operator.__name__ for operator in ours.OPS) == sorted(NAMES)
    assert sorted(ours.__all__) == sorted([*NAMES, "OPS"])


def run(name, *arrays, **attributes):
    _, ours = modules()
    return getattr(ours, name).eval(*arrays, **attributes)


INT8 = np.arange(-128, 128).astype(np.int8)


@peers
def test_integer_division_is_cut_off_toward_zero():
    a, b = INT8[:, None], INT8[INT8 != 0]
    exact = np.trunc(a.astype(float) / b).astype(np.int64).astype(np.int8)  # -128 / -1 wraps
    np.testing.assert_array_equal(run("Div", a, b), exact, strict=True)
    large = np.array([2**63 - 1, -(2**63) + 1])
    np.testing.assert_array_equal(run("Div", large, np.array(-2)), [-(2**62) + 1, 2**62 - 1])
    np.testing.assert_array_equal(run("Div", np.array([7, -7]), np.array(0)), [0, 0])


@peers
@pytest.mark.parametrize(
    ("base", "exponent", "expected"),
    [
        (np.array([3], np.int64), np.array([39], np.uint64), np.array([3**39])),  # no float has so many digits
        (np.array([-3, 2], np.int32), np.array([3, 33], np.int8), np.array([-27, 0], np.int32)),  # wraps
        (np.array([2, 1, -1, -1], np.int32), np.array([-1, -5, -3, -4]), np.array([0, 1, -1, 1], np.int32)),
        (np.array([2, 9], np.int32), np.array([0.5], np.float32), np.array([1, 3], np.int32)),
        (np.array([2], np.float16), np.array([3]), np.array([8], np.float16)),
    ],
)
def test_powers_have_the_type_of_the_base(base, exponent, expected):
    np.testing.assert_array_equal(run("Pow", base, exponent), expected, strict=True)


@peers
@pytest.mark.parametrize(("name", "fold"), [("Mean", None), ("Sum", np.add), ("Max", np.maximum), ("Min", np.minimum)])
def test_any_input_may_be_the_larger_one(name, fold):
    arrays = [np.arange(3.0), np.arange(4.0)[:, None], np.array(2.0), np.arange(24.0).reshape(2, 4, 3)]
    for order in itertools.permutations(arrays):
        before = [array.copy() for array in order]
        expected = sum(order) / 4 if fold is None else functools.reduce(fold, order)
        np.testing.assert_array_equal(run(name, *order), expected, strict=True)
        for array, copy in zip(order, before, strict=True):
            np.testing.assert_array_equal(array, copy)  # the first steps are not written into an input


@peers
def test_prelu_is_the_identity_from_zero_on():
    x = np.array([[-2.0, 0.0, np.inf], [-np.inf, 1.0, np.nan]])
    np.testing.assert_array_equal(
        run("PRelu", x, np.array([np.inf, np.inf, 0.5])), [[-np.inf, 0, np.inf], [-np.inf, 1, np.nan]]
    )


@peers
def test_gemm_does_not_read_c_where_beta_is_0():
    a = np.ones((2, 2), np.float32)
    np.testing.assert_array_equal(run("Gemm", a, a, np.array([np.nan], np.float32), beta=0.0), [[2, 2], [2, 2]])


REFUSED = {
    "two_types": ("Add", [np.zeros(2, np.float32), np.zeros(2)], {}, RuntimeError),
    "boolean_sum": ("Add", [np.zeros(2, bool)] * 2, {}, RuntimeError),
    "integers_and": ("And", [np.zeros(2, int)] * 2, {}, RuntimeError),
    "integer_mean": ("Mean", [np.zeros(2, int)] * 2, {}, RuntimeError),
    "condition": ("Where", [np.zeros(2, int)] * 3, {}, RuntimeError),
    "shapes": ("Mul", [np.zeros(2), np.zeros(3)], {}, ValueError),
    "where_shapes": ("Where", [np.zeros(2, bool), np.zeros(2), np.zeros(3)], {}, ValueError),
    "larger_slope": ("PRelu", [np.zeros(3), np.zeros((2, 3))], {}, ValueError),
    "channel_slope": ("PRelu", [np.zeros((2, 3, 4)), np.zeros(3)], {}, ValueError),
    "larger_c": ("Gemm", [np.zeros((1, 2)), np.zeros((2, 3)), np.zeros((4, 3))], {}, ValueError),
    "c_unread": ("Gemm", [np.zeros((1, 2)), np.zeros((2, 3)), np.zeros(4)], {"beta": 0.0}, ValueError),
    "gemm_rank": ("Gemm", [np.zeros(2), np.zeros((2, 3))], {}, ValueError),
    "gemm_inner": ("Gemm", [np.zeros((1, 2)), np.zeros((2, 3))], {"transA": 1}, ValueError),
    "wildcard": ("Expand", [np.zeros(2), np.array([-1])], {}, ValueError),
    "few_repeats": ("Tile", [np.zeros((2, 2)), np.array([2])], {}, ValueError),
    "negative_repeats": ("Tile", [np.zeros(2), np.array([-1])], {}, ValueError),
}


@peers
@pytest.mark.parametrize(("name", "arrays", "attributes", "error"), REFUSED.values(), ids=REFUSED)
def test_refused(name, arrays, attributes, error):
    with pytest.raises(error, match="expected"):
        run(name, *arrays, **attributes)


@peers
def test_earlier_opsets_are_refused():
    onnx, ours = modules()
    node = onnx.helper.make_node("Add", ["a", "b"], ["c"], broadcast=1, axis=0)
    infos = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in "abc"]
    graph = onnx.helper.make_graph([node], "add", infos[:2], infos[2:])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 6)])
    with pytest.raises(NotImplementedError, match="expected version 7 of the operator or later"):
        onnx.reference.ReferenceEvaluator(model, new_ops=ours.OPS)


def test_missing_onnx_is_named():
    code = "import sys; sys.modules['onnx'] = None; import bcast.onnx"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.endswith('ImportError: bcast.onnx needs the onnx package: pip install "bcast[onnx]"\n')
