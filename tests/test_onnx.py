"""`bcast.onnx`: the official node tests of its operators, and further rules of ONNX for types, shapes and integers."""

import functools
import importlib
import importlib.util
import itertools
import math
import warnings

import numpy as np
import pytest
from _commands import python
from test_subclasses import lying

import bcast

pytestmark = pytest.mark.peers  # they run where onnx is sure to be installed

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of other packages, while they are imported
    onnx = pytest.importorskip("onnx")
    from onnx.reference import ReferenceEvaluator
    from onnx.reference.op_run import RuntimeTypeError

    import bcast.onnx

# Each operator, the module of its official tests, and at least how many there have been since onnx 1.17.
OFFICIAL = {
    "Add": ("add", 8), "And": ("and_", 8), "BitShift": ("bitshift", 8), "BitwiseAnd": ("bitwiseand", 4),
    "BitwiseOr": ("bitwiseor", 4), "BitwiseXor": ("bitwisexor", 4), "Clip": ("clip", 12), "Div": ("div", 3),
    "Equal": ("equal", 4), "Expand": ("expand", 2), "Gemm": ("gemm", 11), "Greater": ("greater", 2),
    "GreaterOrEqual": ("greater_or_equal greater_equal", 2), "Less": ("less", 2),
    "LessOrEqual": ("less_or_equal less_equal", 2), "Max": ("max", 14), "Mean": ("mean", 3), "Min": ("min", 14),
    "Mod": ("mod", 13), "Mul": ("mul", 3), "Or": ("or_", 8), "PRelu": ("prelu", 2), "Pow": ("pow", 12),
    "Sub": ("sub", 3), "Sum": ("sum", 3), "Tile": ("tile", 2), "Where": ("where", 2), "Xor": ("xor", 8),
}  # fmt: skip

MULTIDIRECTIONAL = sorted(set(OFFICIAL) - {"Clip", "Expand", "Gemm", "PRelu", "Tile"})
LOGICAL = {"And", "Or", "Xor"}
OF_INTEGERS = {"BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitShift", "Mod"}
NEEDED = {"BitShift": {"direction": "LEFT"}}  # attributes
VARIADIC = {"Max", "Mean", "Min", "Sum"}

# The examples of ONNX's page; the first of each pair is A.
A = (2, 3, 4, 5)
BOTH_STRETCH = [(A, ()), (A, (5,)), ((4, 5), A), ((1, 4, 5), (2, 3, 1, 1)), ((3, 4, 5), (2, 1, 1, 1))]
B_STRETCHES = [(A, ()), (A, (5,)), (A, (2, 1, 1, 5)), (A, (1, 3, 1, 5))]


def model(operator, count, *, opset=18, **attributes):
    """A model of one node, its inputs' types left to the run."""
    names = [f"x{i}" for i in range(count)]
    node = onnx.helper.make_node(operator, names, ["y"], **attributes)
    anything = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.UNDEFINED, None) for name in [*names, "y"]]
    graph = onnx.helper.make_graph([node], operator, anything[:-1], anything[-1:])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)], ir_version=8)


@functools.cache
def evaluator(operator, count, **options):
    return ReferenceEvaluator(model(operator, count, **options), new_ops=bcast.onnx.OPS)


def run(operator, *inputs, **options):
    """Run one node on arrays, which must stay as they are, and make sure that it was ours."""
    session = evaluator(operator, len(inputs), **options)
    assert isinstance(session.rt_nodes_[0], getattr(bcast.onnx, operator))
    for array in inputs:
        if isinstance(array, np.ndarray):
            np.ndarray.setflags(array, write=False)
    (result,) = session.run(None, {f"x{i}": array for i, array in enumerate(inputs)})
    assert type(result) is np.ndarray
    assert not any(np.shares_memory(result, array) for array in inputs)
    return result


def assert_same(result, expected):
    if expected.dtype.kind == "V":  # NumPy takes bfloat16's NaNs for unequal
        assert result.dtype == expected.dtype
        result, expected = result.astype(np.float32), expected.astype(np.float32)
    np.testing.assert_array_equal(result, expected, strict=True)


@functools.cache
def official_tests():
    """Return the node tests that come with onnx: operator -> its tests, those of its decomposition among them."""
    modules = importlib.import_module("onnx.backend.test.case.node")
    for names, _ in OFFICIAL.values():
        found = [name for name in names.split() if importlib.util.find_spec(f"{modules.__name__}.{name}")]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            importlib.import_module(f"{modules.__name__}.{found[0]}")  # adds its tests to those of all nodes
    tests = {operator: [] for operator in OFFICIAL}
    for case in modules._NodeTestCases:
        for operator in {node.op_type for node in case.model.graph.node} & set(OFFICIAL):
            tests[operator].append(case)
    return tests


@pytest.mark.parametrize("operator", OFFICIAL)
def test_the_official_tests_of_onnx_pass(operator):
    cases = official_tests()[operator]
    assert len(cases) >= OFFICIAL[operator][1]
    for case in cases:
        session = ReferenceEvaluator(case.model, new_ops=bcast.onnx.OPS)
        assert any(isinstance(node, getattr(bcast.onnx, operator)) for node in session.rt_nodes_)
        for inputs, outputs in case.data_sets:
            results = session.run(None, dict(zip(session.input_names, inputs, strict=True)))
            for result, expected in zip(results, outputs, strict=True):
                assert (result.dtype, result.shape) == (expected.dtype, expected.shape), case.name
                np.testing.assert_allclose(result, expected, case.rtol, case.atol, err_msg=case.name)


def test_every_operator_has_an_official_test():
    assert sorted(operator.__name__ for operator in bcast.onnx.OPS) == sorted(OFFICIAL)
    assert set(bcast.onnx.__all__) == {"OPS", *OFFICIAL}


def drawn(operator, shapes, seed=0):
    """Arrays of the shapes, of a type that the operator takes; Where's condition comes first."""
    rng = np.random.default_rng(seed)
    if operator in LOGICAL:
        return [np.asarray(rng.random(shape) < 0.5) for shape in shapes]
    if operator in OF_INTEGERS:
        return [np.asarray(rng.integers(0, 9, shape), np.uint8) for shape in shapes]
    arrays = [np.asarray(rng.integers(1, 9, shape), np.float32) for shape in shapes]
    return [np.asarray(arrays[0] > 4), *arrays[1:]] if operator == "Where" else arrays


FOLDED = {"Max": np.maximum, "Min": np.minimum, "Sum": np.add}
NUMPYS = {"Div": np.divide, "Mul": np.multiply, "Pow": np.power, "Sub": np.subtract}
NUMPYS |= {name: getattr(np, name.lower()) for name in ("Add", "Equal", "Greater", "Less", "Where")}
NUMPYS |= {name: getattr(np, f"logical_{name.lower()}") for name in LOGICAL}
NUMPYS |= {f"Bitwise{name}": getattr(np, f"bitwise_{name.lower()}") for name in LOGICAL}
NUMPYS |= {"GreaterOrEqual": np.greater_equal, "LessOrEqual": np.less_equal, "Mod": np.mod, "BitShift": np.left_shift}
NUMPYS |= {name: lambda *arrays, ufunc=ufunc: functools.reduce(ufunc, arrays) for name, ufunc in FOLDED.items()}
NUMPYS["Mean"] = lambda *arrays: functools.reduce(np.add, arrays) / np.float32(len(arrays))


@pytest.mark.parametrize("operator", MULTIDIRECTIONAL)
def test_both_shapes_of_a_binary_operator_stretch(operator):
    third = {"Where": [(1, 5)], **{name: [(3, 1, 1), (1, 1, 1, 1)] for name in VARIADIC}}.get(operator, [])
    cases = [[*shapes, *third] for a, b in BOTH_STRETCH for shapes in ((a, b), (b, a))]
    cases += [[a, b, b][: 3 if operator == "Where" else 2] for a, b in (((), ()), ((0,), (1,)), ((2, 1), (0,)))]
    if operator in VARIADIC:
        cases += [[(2, 3)], [(2,), (1,), (3, 1)], [(), (1,), (2,), (1, 1), (3, 1, 1)]]
    for shapes in cases:
        arrays = drawn(operator, shapes)
        with np.errstate(divide="ignore"):
            expected = np.asarray(NUMPYS[operator](*arrays))
        assert_same(run(operator, *arrays, **NEEDED.get(operator, {})), expected)
    for a, b in ((3,), (2,)), ((2, 1), (3, 4)), ((0,), (2,)):
        with pytest.raises(ValueError, match="expected"):
            run(operator, *drawn(operator, [a, b, b] if operator == "Where" else [a, b]), **NEEDED.get(operator, {}))


@pytest.mark.parametrize("shapes", B_STRETCHES, ids=str)
def test_prelu_stretches_the_slope_alone(shapes):
    x, slope = drawn("PRelu", shapes)
    x = x - 4
    assert_same(run("PRelu", x, slope), np.where(x < 0, x * slope, x))
    if len(shapes[1]):  # the other way round, which other systems accept
        with pytest.raises(ValueError, match="expected"):
            run("PRelu", slope, x)


def test_prelu_keeps_items_that_are_not_negative():
    x = np.array([np.nan, -0.0, 0.0, np.inf, -np.inf], np.float32)
    result = run("PRelu", x, np.array(np.inf, np.float32))
    assert_same(result, x)
    assert_same(np.signbit(result[1:3]), np.array([True, False]))


@pytest.mark.parametrize("shape", [None, (), (1,), (4,), (2, 1), (1, 4), (1, 1), (2, 4)], ids=str)
@pytest.mark.parametrize(("transA", "transB"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_gemm(shape, transA, transB):  # noqa: N803
    rng = np.random.default_rng(1)
    a, b = [rng.integers(-9, 9, size).astype(np.float32) for size in ((2, 3), (3, 4))]
    inputs = [a.T if transA else a, b.T if transB else b]
    expected = 2 * (a @ b)
    if shape is not None:
        inputs.append(np.asarray(rng.integers(-9, 9, shape), np.float32))
        expected = expected + np.float32(0.5) * inputs[2]
    assert_same(run("Gemm", *inputs, alpha=2.0, beta=0.5, transA=transA, transB=transB), expected)


@pytest.mark.parametrize("beta", [0.0, 1.0])
@pytest.mark.parametrize(
    ("a", "b", "c"),
    [
        ((1, 3), (3, 4), (2, 4)),  # C alone broadcasts
        ((2, 3), (3, 1), (4,)),
        ((2, 3), (3, 4), (1, 2, 4)),  # no more axes than the product
        ((2, 3), (3, 4), (2,)),
        ((2, 3), (3,), (1,)),
    ],
)
def test_gemm_refuses(a, b, c, beta):
    with pytest.raises(ValueError, match="expected"):
        run("Gemm", *drawn("Gemm", [a, b, c]), beta=beta)


def test_gemm_ignores_c_if_beta_is_zero():
    a, b = drawn("Gemm", [(2, 3), (3, 4)])
    assert_same(run("Gemm", a, b, np.array(np.nan, np.float32), beta=0.0), a @ b)


def test_gemm_of_integers_is_exact():
    a, b, c = np.array([[2**60 + 1]]), np.array([[3]]), np.array(2**53 + 1)
    assert_same(run("Gemm", a, b, c), a * b + c)
    assert_same(run("Gemm", a, b, c, alpha=2.0, beta=-1.0), 2 * a * b - c)
    small = [array.astype(np.int32) for array in (np.array([[5]]), b, np.array(4))]
    assert_same(run("Gemm", *small, alpha=0.5, beta=0.25), np.array([[8]], np.int32))  # 7.5 + 1


def test_gemm_of_halves_is_computed_in_single_precision():
    a, b, c = [np.full(shape, value, np.float16) for shape, value in [((1, 2), 256), ((2, 1), 256), ((1,), -60000)]]
    assert_same(run("Gemm", a, b, c, alpha=0.75), np.array([[98304 - 60000]], np.float16))  # 131072 is no half


def test_halves_are_added_up_in_single_precision():
    large = np.array([60000, -60000], np.float16)
    assert_same(run("Mean", large, large[:, None]), np.array([[60000, 0], [0, -60000]], np.float16))
    assert_same(run("Mean", large), large)
    assert_same(run("Sum", large, large, -large), large)
    small = [np.array(value, np.float16) for value in (2048, 1, 1)]  # 2049 is no half
    assert_same(run("Sum", *small), np.array(2050, np.float16))


def test_bfloat16():
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    a, b = np.array([-3, 0, 2.5]).astype(bfloat16), np.array([[2], [4]]).astype(bfloat16)
    both = [array.astype(np.float32) for array in (a, b)]
    for operator in ("Add", "Div", "Max", "Mean", "Min", "Mul", "Pow", "Sub", "Sum"):
        assert_same(run(operator, a, b), NUMPYS[operator](*both).astype(bfloat16))
    for operator in ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"):
        assert_same(run(operator, a, b), NUMPYS[operator](*both))
    assert_same(run("PRelu", a, b[0]), np.array([-6, 0, 2.5]).astype(bfloat16))
    assert_same(run("Gemm", b, a[None]), (both[1] @ both[0][None]).astype(bfloat16))
    assert_same(run("Where", a > b, a, b), np.where(both[0] > both[1], *both).astype(bfloat16))
    assert_same(run("Expand", a, np.array([2, 1])), np.stack([a, a]))
    assert_same(run("Tile", a, np.array([2])), np.concatenate([a, a]))


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_integers_wrap_and_divide_as_onnx_says(dtype):
    least, most = [int(bound) for bound in (np.iinfo(dtype).min, np.iinfo(dtype).max)]
    a = np.array([least, least + 1, 0, 5, 6, 7, most], dtype)
    b = np.array([[1], [2], [3], [most]], dtype)
    pairs = [[(int(x), int(y)) for x in a] for (y,) in b]

    def wrapped(function):
        mask = (1 << 8 * a.itemsize) - 1
        bits = [[function(x, y) & mask for x, y in row] for row in pairs]
        return np.array(bits, f"u{a.itemsize}").view(dtype)

    assert_same(run("Add", a, b), wrapped(lambda x, y: x + y))
    assert_same(run("Sub", a, b), wrapped(lambda x, y: x - y))
    assert_same(run("Mul", a, b), wrapped(lambda x, y: x * y))
    assert_same(run("Div", a, b), wrapped(lambda x, y: abs(x) // y * (1 if x >= 0 else -1)))
    assert_same(run("Max", a, b), wrapped(max))
    assert_same(run("Min", a, b), wrapped(min))
    assert_same(run("Less", a, b), np.array([[x < y for x, y in row] for row in pairs]))
    assert_same(run("Div", a, np.array(0, dtype)), np.zeros_like(a))
    if least < 0:
        assert_same(run("Div", np.array([-7, 7, 6, -6], dtype), np.array(-2, dtype)), np.array([3, -3, -3, 3], dtype))


@pytest.mark.parametrize(
    ("base", "exponent", "power"),
    [
        (np.int64([3, -3, 2**62]), np.int64([39, 3, 1]), np.int64([3**39, -27, 2**62])),  # beyond what floats hold
        (np.int32([2, -2, 10]), np.int64([31, 31, 10]), np.int32([-(2**31), -(2**31), 1410065408])),  # they wrap
        (np.int32([1, -1, -1, 2, -2]), np.int8([-3, -3, -4, -1, -2]), np.int32([1, -1, 1, 0, 0])),  # cut off
        (np.int32([2**24 + 1]), np.float32([1]), np.int32([2**24 + 1])),  # which single precision does not hold
        (np.float32([-1]), np.uint32([2**24 + 1]), np.float32([-1])),
        (np.int32([2, 5]), np.float32([0.5, 2]), np.int32([1, 25])),
        (np.float32([2, 3]), np.int64([-1, 2]), np.float32([0.5, 9])),
        (np.int64(7), np.uint64([0, 1, 2]), np.int64([1, 7, 49])),
    ],
)
def test_pow_is_of_the_type_of_its_base(base, exponent, power):
    assert_same(run("Pow", np.asarray(base), exponent), power)


NUMBERS = [-np.inf, -7.5, -3, -1, -0.0, 0.0, 2, 3.5, 60000, np.inf, np.nan]


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_remainders_of_integers(dtype):
    """Python's for the sign of the divisor, C's for that of the dividend; shifts as of numbers without an end."""
    least, most = [int(bound) for bound in (np.iinfo(dtype).min, np.iinfo(dtype).max)]
    rows = [least, least + 1, max(least, -7), 0, 1, 6, 7, most]
    columns = [each for each in rows if each] + [max(least, -1) or 1]
    a, b = np.array(rows, dtype), np.array(columns, dtype)[:, None]
    for fmod in (0, 1):
        exact = [[abs(x) % abs(y) * (1 if x >= 0 else -1) if fmod else x % y for x in rows] for y in columns]
        for opset in (10, 13, 28):
            assert_same(run("Mod", a, b, fmod=fmod, opset=opset), np.array(exact, dtype))
        assert_same(run("Mod", a, np.array(0, dtype), fmod=fmod), np.zeros_like(a))
    assert_same(run("Mod", a, b), run("Mod", a, b, fmod=0))
    if least < 0 and onnx.defs.onnx_opset_version() < 28:  # which has no signed ones
        return
    width = 8 * a.itemsize
    bits = [each for each in (0, 1, width - 1, width, 100, -1) if each >= least]
    counts = np.array(bits, dtype)[:, None]
    for direction in ("LEFT", "RIGHT"):
        shifts = [[n if 0 <= n < width else width for _ in rows] for n in bits]
        if direction == "LEFT":
            exact = [[(x << n) % (1 << width) for x, n in zip(rows, row, strict=True)] for row in shifts]
        else:
            exact = [[(x >> n) % (1 << width) for x, n in zip(rows, row, strict=True)] for row in shifts]
        expected = np.array(exact, f"u{a.itemsize}").view(dtype)
        assert_same(run("BitShift", a, counts, direction=direction, opset=28), expected)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16"])
def test_remainders_of_floats(dtype):
    if dtype == "bfloat16":
        dtype = pytest.importorskip("ml_dtypes").bfloat16
    a, b = np.array(NUMBERS).astype(dtype), np.array(NUMBERS).astype(dtype)[:, None]
    exact = np.full((len(NUMBERS), len(NUMBERS)), np.nan)
    for i, y in enumerate(b.ravel().tolist()):
        for k, x in enumerate(a.tolist()):
            if np.isfinite(x) and y != 0 and not np.isnan(y):
                exact[i, k] = math.fmod(x, y)
    assert_same(run("Mod", a, b, fmod=1, opset=13), exact.astype(dtype))
    assert_same(run("Mod", a, b, fmod=1, opset=28), exact.astype(dtype))
    for opset in (10, 13):
        kind = a.astype("float32") if opset == 10 else a
        with pytest.raises(
            RuntimeTypeError, match=r"^Mod: `fmod` expected 1 for tensor\(\w+\), got 0, which needs opset 28"
        ):
            run("Mod", kind, kind, opset=opset)
    with pytest.raises(ValueError, match="`fmod` expected 0 or 1, got 2"):
        run("Mod", a, b, fmod=2, opset=13)
    if onnx.defs.onnx_opset_version() < 28:  # which says what the other remainder of floats is
        return
    with np.errstate(invalid="ignore"):
        signed = np.where((exact != 0) & (np.signbit(exact) != np.signbit(b)), exact + b.astype(float), exact)
    result = run("Mod", a, b, fmod=0, opset=28)
    assert_same(result, signed.astype(dtype))
    is_zero = result == 0
    signs = np.broadcast_to(np.signbit(b.astype(float)), result.shape)
    assert_same(np.signbit(result.astype(float))[is_zero], signs[is_zero])


def test_shifts_have_a_direction():
    bits = np.ones(2, np.uint8)
    with pytest.raises(ValueError, match="`direction` expected LEFT or RIGHT, got UP"):
        run("BitShift", bits, bits, direction="UP")


@pytest.mark.parametrize("dtype", ["int8", "uint64", "float16", "float32", "float64", "bfloat16"])
def test_clip(dtype):
    """The largest finite number is the bound of a float where none is given; `max` wins over `min`."""
    if dtype == "bfloat16":
        dtype = pytest.importorskip("ml_dtypes").bfloat16
    is_integer = np.dtype(dtype).kind in "iu"
    values = [0, 1, 2, 3, 100] if is_integer else NUMBERS
    data = np.array(values).astype(dtype)
    largest = None if is_integer else float(np.nextafter(np.array(np.inf, dtype), np.array(0, dtype)))

    def expected(least, most):
        least = -largest if least is None and largest else least
        most = largest if most is None else most
        exact = []
        for value in values:
            value = value if least is None or not value < least else least
            exact.append(value if most is None or not value > most else most)
        return np.array(exact).astype(dtype)

    for least, most in itertools.product((None, 0, 1, 3), (None, 1, 2, 5)):
        bounds = [None if each is None else np.array(each, dtype) for each in (least, most)]
        assert_same(run("Clip", data, *bounds), expected(least, most))
        assert_same(run("Clip", data[None, 2:3], *bounds), expected(least, most)[None, 2:3])
        ones = [None if each is None else each.reshape(1) for each in bounds]  # which runtimes accept
        assert_same(run("Clip", data[3], *ones), expected(least, most)[3])
        if most is None:
            assert_same(run("Clip", data, bounds[0]), expected(least, None))
    assert_same(run("Clip", data), expected(None, None))
    if not is_integer:
        assert_same(run("Clip", data, np.array(np.nan, dtype)), np.full_like(data, np.nan))
    with pytest.raises(ValueError, match=r"^Clip: `min` expected a scalar, got shape \(2,\)"):
        run("Clip", data, np.zeros(2, dtype))
    with pytest.raises(RuntimeTypeError, match="`max` expected the type of `input`"):
        run("Clip", data, None, np.array(0, np.int16))


def test_clip_by_attributes():
    """Until opset 10, whose defaults are those of single precision."""
    data, most = np.array(NUMBERS, np.float32), float(np.finfo(np.float32).max)
    assert_same(run("Clip", data, opset=10), np.clip(data, -most, most))
    assert_same(run("Clip", data, opset=7, min=-2.5), np.clip(data, np.float32(-2.5), most))
    assert_same(run("Clip", data, opset=7, min=2.0, max=1.0), np.where(np.isnan(data), data, np.float32(1)))
    wide = np.array([-1e300, 0.1, np.inf])
    assert_same(run("Clip", wide, opset=10), np.array([-most, 0.1, most]))
    assert_same(run("Clip", wide, opset=10, max=0.1), np.array([-most, 0.1, np.float32(0.1)]))
    half = np.array([-np.inf, 7], np.float16)
    assert_same(run("Clip", half, opset=10, max=3.0), np.array([-np.inf, 3], np.float16))


@pytest.mark.parametrize("of_onnx", [True, False], ids=["onnx", "onnxruntime"])
def test_other_systems_agree(of_onnx):
    """Both follow the page, except for NaN as a bound of Clip, and the evaluator for infinities beyond a bound."""
    runtime = None if of_onnx else pytest.importorskip("onnxruntime")
    rng = np.random.default_rng(5)
    numbers = np.array([*NUMBERS, *rng.normal(size=9) * 4]).astype("f4")
    integers = rng.integers(-9, 9, 20).astype("i4")
    scalar = np.float32(-2).reshape(())
    calls = [("Max", [numbers, numbers[::-1].copy(), numbers[:1]], {}), ("Min", [numbers, numbers[1:2]], {})]
    calls += [(name, [numbers, numbers[:, None]], {}) for name in ("GreaterOrEqual", "LessOrEqual")]
    calls += [(name, [integers, integers[:, None]], {}) for name in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")]
    calls += [("Mod", [integers, integers[integers != 0][:, None]], {"fmod": fmod}) for fmod in (0, 1)]
    calls += [("Mod", [numbers, numbers[:, None]], {"fmod": 1})]
    calls += [("BitShift", [x.astype("u1"), x.astype("u1")], {"direction": "RIGHT"}) for x in [abs(integers)]]
    finite = numbers[np.isfinite(numbers)] if of_onnx else numbers[~np.isnan(numbers)]
    for bounds in ([], [scalar], [None, scalar], [scalar, scalar + 3], [scalar + 3, scalar]):
        calls.append(("Clip", [finite, *map(_array_or_none, bounds)], {}))
    for operator, inputs, attributes in calls:
        of_call = model(operator, len(inputs), **attributes)
        named = {f"x{i}": x for i, x in enumerate(inputs)}
        if of_onnx:
            with np.errstate(all="ignore"):
                (expected,) = ReferenceEvaluator(of_call).run(None, named)
        else:
            expected = run_by_runtime(runtime, of_call, named)
        assert_same(run(operator, *inputs, **attributes), expected)


def _array_or_none(value):
    return None if value is None else np.asarray(value)


def run_by_runtime(runtime, of_call, named):
    """Run a model of one node by onnxruntime, which needs types, and no input for omitted arguments."""
    node = of_call.graph.node[0]
    given = {name: value for name, value in named.items() if value is not None}
    node.input[:] = [name if name in given else "" for name in node.input]
    types = {name: onnx.helper.np_dtype_to_tensor_dtype(value.dtype) for name, value in given.items()}
    inputs = [onnx.helper.make_tensor_value_info(name, types[name], value.shape) for name, value in given.items()]
    is_comparison = node.op_type in ("GreaterOrEqual", "LessOrEqual")
    kind = onnx.TensorProto.BOOL if is_comparison else types[node.input[0]]
    output = onnx.helper.make_tensor_value_info("y", kind, None)
    graph = onnx.helper.make_graph([node], "call", inputs, [output])
    whole = onnx.helper.make_model(graph, opset_imports=of_call.opset_import, ir_version=8)
    session = runtime.InferenceSession(whole.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, given)[0]


def test_nan_wins():
    a, b = np.array([np.nan, 1, np.nan], np.float32), np.array([1, np.nan, np.nan], np.float32)
    for operator in ("Max", "Min"):
        assert_same(run(operator, a, b, np.zeros(1, np.float32)), np.full(3, np.nan, np.float32))


@pytest.mark.parametrize("kind", [object, str, np.dtypes.StringDType()], ids=["object", "str", "StringDType"])
def test_strings_are_compared_and_chosen(kind):
    a, b = np.array(["a", "bc", ""], kind), np.array([["bc"], ["a"]], kind)
    assert_same(run("Equal", a, b, opset=19), np.array([[False, True, False], [True, False, False]]))
    assert_same(run("Equal", np.array("a", kind), np.array("a", kind), opset=19), np.array(True))
    assert_same(run("Where", np.array([[True], [False]]), a, b[:1]), np.array([["a", "bc", ""], ["bc"] * 3], kind))
    assert_same(run("Expand", a, np.array([2, 3])), np.stack([a, a]))
    assert_same(run("Tile", a, np.array([2])), np.concatenate([a, a]))


def test_expand_stretches_both_ways():
    data = np.arange(3, dtype=np.int16).reshape(3, 1)
    assert_same(run("Expand", data, np.array([2, 1, 6])), np.broadcast_to(data, (2, 3, 6)).copy())
    assert_same(run("Expand", data, np.array([], np.int64)), data)
    for shape in ([2, 1], [-1, 3]):
        with pytest.raises(ValueError, match="`target_shape` expected"):
            run("Expand", data, np.array(shape))


@pytest.mark.parametrize("shape", [3, [[3]]], ids=str)
def test_expand_to_a_shape_that_is_none(shape):
    with pytest.raises(RuntimeTypeError, match=r"^Expand: `target_shape` expected a 1-D sequence of integers, got "):
        run("Expand", np.ones(3), np.array(shape))


def test_tile_repeats_along_each_axis():
    data = np.arange(6.0).reshape(2, 3)
    assert_same(run("Tile", data, np.array([3, 2])), np.tile(data, (3, 2)))
    assert_same(run("Tile", data, np.array([0, 2])), np.empty((0, 6)))
    for repeats in ([2], [1, 2, 3], [1, -1], [[1, 2]]):
        with pytest.raises(ValueError, match="`repeats` expected 2 counts"):
            run("Tile", data, np.array(repeats))


def test_inputs_of_other_classes():
    """An array's type is that of its memory; where something else goes with that, it would be lost."""
    data, ones = lying(np.array([1.0, 2.0])), np.ones(2)
    with pytest.raises(RuntimeTypeError, match=r"`B` expected the type of `A`, tensor\(double\), got tensor\(float\)"):
        run("Add", data, ones.astype(np.float32))
    assert_same(run("Add", data, ones), np.array([2.0, 3.0]))
    assert_same(run("Tile", data, np.array([2])), np.array([1.0, 2.0, 1.0, 2.0]))
    with pytest.raises(RuntimeTypeError, match=r"`B` expected one of .*, got MaskedArray"):
        run("Add", ones, np.ma.array(ones, mask=[True, False]))


@pytest.mark.parametrize(
    ("operator", "dtypes", "opset", "message"),
    [
        ("Add", ["float32", "float64"], 14, r"`B` expected the type of `A`, tensor\(float\), got tensor\(double\)"),
        ("Add", ["int8", "int8"], 13, "`A` expected one of .*, got tensor.int8"),  # from opset 14 on
        ("Max", ["float32", "float32", "float16"], 18, "`data_0` expected the type of `data_0`"),
        ("Where", ["float32", "float32", "float32"], 18, "`condition` expected one of tensor.bool."),
        ("Where", ["bool", "float32", "int32"], 18, "`Y` expected the type of `X`"),
        ("Expand", ["float32", "int32"], 18, "`shape` expected one of tensor.int64., got tensor.int32"),
        ("Tile", ["float32", "int32"], 18, "`repeats` expected one of tensor.int64."),
        ("Equal", ["str", "int64"], 19, "`B` expected the type of `A`, tensor.string."),
        ("Equal", ["str", "str"], 13, "`A` expected one of"),  # from opset 19 on
    ],
)
def test_types_are_those_of_the_schema(operator, dtypes, opset, message):
    arrays = [np.ones((1, 1), dtype) for dtype in dtypes]
    with pytest.raises(RuntimeTypeError, match=f"^{operator}: {message}"):
        run(operator, *arrays, opset=opset)


@pytest.mark.parametrize(("name", "named"), [(None, "Add"), ("bias_7", "Add 'bias_7'")])
def test_errors_name_the_node_and_its_inputs(name, named):
    with pytest.raises(ValueError, match=f"^{named}: `.* expected .*`A` 'x0' of .*, `B` 'x1' of "):
        run("Add", np.ones((2, 3)), np.ones(2), name=name)
    with pytest.raises(ValueError, match="`data_0` 'x2' of "):
        run("Max", np.ones(3), np.ones(3), np.ones(2), name=name)
    with pytest.raises(
        RuntimeTypeError, match=f"^{named}: `A` expected one of .*`A` 'x0' of shape unknown, `B` 'x1' of shape "
    ):
        run("Add", [[1, 2], [3]], np.ones(2), name=name)


def test_inputs_that_are_not_optional():
    inputs = np.ones(2, bool), np.ones(2), np.ones(2)
    for i in range(3):
        with pytest.raises(RuntimeTypeError, match="got NoneType"):
            run("Where", *inputs[:i], None, *inputs[i + 1 :])


@pytest.mark.parametrize(
    ("operator", "opset"), [("Add", 7), ("Gemm", 7), ("Max", 8), ("Mean", 8), ("Tile", 6), ("Clip", 6)]
)
def test_the_first_operators_with_common_broadcasting(operator, opset):
    count = 3 if operator == "Gemm" else 2
    assert isinstance(evaluator(operator, count, opset=opset).rt_nodes_[0], getattr(bcast.onnx, operator))
    with pytest.raises(NotImplementedError, match=f"^{operator} expected version .* of the operator or later, "):
        evaluator(operator, count, opset=opset - 1)


def test_import_without_onnx_names_the_extra():
    code = "import sys; sys.modules['onnx'] = None; import bcast.onnx"
    done = python("-c", code)
    assert done.stderr.rstrip().endswith('ImportError: bcast.onnx needs the onnx package: pip install "bcast[onnx]"')
