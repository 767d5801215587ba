"""The pages in docs/: their examples, and each row of the table of other systems' calls and their equivalents here."""

import doctest
import importlib
import re
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import bcast
from bcast.__main__ import main

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if "_build" not in page.parts)
NOT_RUN = {"`ReferenceEvaluator(model)`", "Broadcast-1 with `pdpd` and axis 1, from C++"}


class Row(NamedTuple):
    system: str
    theirs: str
    ours: str


def rows():
    """Return the table's rows, each with the system under whose heading it is."""
    page = (DOCS / "coming-from.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\|(.*)\|$", page.partition("\n## ")[0], re.M)
    found = []
    system = ""
    for line in lines[2:]:
        theirs, ours, _ = [cell.strip() for cell in line.split("|")]
        if ours:
            found.append(Row(system, theirs, re.fullmatch("`(.*)`", ours)[1]))
        else:
            system = theirs.strip("*")
    return found


ROWS = rows()


def arrays():
    image = np.arange(-60, 60, dtype=np.float32).reshape(2, 3, 4, 5)
    return {
        "x": np.array([1, 2, 3], np.float32),
        "bias": np.array([10, 20, 30], np.float32),
        "column": np.array([[5], [6]], np.float32),
        "grad": np.array([[1, 2, 3], [40, 50, 60]], np.float32),
        "prefix": np.array([[1, 2, 3], [4, 5, 6]], np.float32),
        "canvas": np.zeros((2, 3), np.float32),
        "image": image,
        "slope": np.array([0.5, 0.25, 2], np.float32).reshape(3, 1, 1),
        "pictures": np.arange(120, dtype=np.uint8).reshape(2, 4, 5, 3),
    }


def prelu(x, slope):
    return np.where(x < 0, slope * x, x)


def loaded(name):
    """Import another system or skip; what it warns of while it is imported is not ours to mend."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip(name.partition(".")[0])
        return importlib.import_module(name)


def with_torch(call):
    torch = loaded("torch")
    modules = {"torchvision": loaded("torchvision")} if "torchvision" in call else {}
    modules |= {name: torch.from_numpy(array) for name, array in arrays().items()}
    return eval(call, {"torch": torch, **modules})


def with_jax(call):
    jax = loaded("jax")
    jnp = loaded("jax.numpy")
    return eval(call, {"jax": jax, "jnp": jnp, **{name: jnp.asarray(array) for name, array in arrays().items()}})


def with_onnx(call):
    """Evaluate a call of an operator by the reference evaluator, with its own operators."""
    loaded("onnx")
    helper = importlib.import_module("onnx.helper")
    evaluator = importlib.import_module("onnx.reference").ReferenceEvaluator

    def operator(name):
        def run(*inputs):
            values = {f"i{i}": np.asarray(value) for i, value in enumerate(inputs)}
            return evaluator(helper.make_node(name, list(values), ["o"])).run(None, values)[0]

        return run

    name = call.partition("(")[0]
    return eval(call, {name: operator(name), **arrays()})


def with_openvino(call):
    openvino = loaded("openvino")
    node = eval(call, {"opset1": openvino.opset1, "opset3": openvino.opset3, **arrays()})
    compiled = openvino.Core().compile_model(openvino.Model([node], [], "call"), "CPU")
    return compiled([])[0]


def with_ngraph(call):
    """Evaluate a call of nGraph's by what its pages say, in NumPy: it is installed nowhere any more."""

    def broadcast(arg, shape, broadcast_axes):
        view = np.expand_dims(arg, tuple(broadcast_axes))
        assert all(view.shape[i] == shape[i] for i in range(len(shape)) if i not in broadcast_axes)
        return np.broadcast_to(view, shape)

    def broadcast_like(arg, like_arg, initial_broadcast_axes):
        return broadcast(arg, like_arg.shape, initial_broadcast_axes or set(range(like_arg.ndim)))

    def total(delta, broadcast_axes):
        return delta.sum(axis=tuple(broadcast_axes), dtype=delta.dtype)

    return eval(call, {"Broadcast": broadcast, "BroadcastLike": broadcast_like, "Sum": total, **arrays()})


def with_module(name):
    return lambda call: eval(call, {name: loaded(name), **arrays()})


SYSTEM = {"PyTorch": with_torch, "JAX": with_jax, "ONNX": with_onnx, "nGraph": with_ngraph}
SYSTEM |= {"NumPy": lambda call: eval(call, {"np": np, **arrays()})}
SYSTEM |= {"OpenVINO": with_openvino, "OpenCV": with_module("cv2")}
SYSTEM |= {name: with_module(name) for name in ("albucore", "einops", "numexpr")}


def with_bcast(call):
    return eval(call, {"np": np, "bcast": bcast, "prelu": prelu, **arrays()})


def compared(row):
    """Return the call of theirs in a row's first cell; None if it cannot be run here."""
    return None if row.theirs in NOT_RUN else re.match("`(.*?)`", row.theirs)[1]


def test_table_is_read():
    assert {row.system for row in ROWS} == set(SYSTEM)
    assert sum(compared(row) is None for row in ROWS) == len(NOT_RUN)
    said = " ".join((DOCS / "coming-from.md").read_text(encoding="utf-8").split())
    for name in ("column", "canvas", "image", "slope"):
        assert f"`{name}` {arrays()[name].shape}" in said


@pytest.mark.parametrize("row", [row for row in ROWS if "(model" not in row.ours], ids=lambda row: row.ours)
def test_results_are_new_arrays(row):
    results = with_bcast(row.ours)
    if row.ours.startswith("bcast.broadcast_shapes"):
        assert results == (2, 3)
        return
    for result in results if isinstance(results, tuple) else [results]:
        assert type(result) is np.ndarray
        expected = np.float16 if "dtype=np.float16" in row.ours else np.float32
        expected = np.intp if "argm" in row.ours else expected
        assert result.dtype == (np.uint8 if "saturate" in row.ours else expected)
        assert result.flags.c_contiguous
        assert result.flags.writeable
        assert result.flags.owndata


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, marks=() if row.system in ("NumPy", "nGraph") else pytest.mark.peers, id=row.theirs)
        for row in ROWS
        if compared(row) is not None
    ],
)
def test_ours_is_theirs(row):
    theirs, ours = SYSTEM[row.system](compared(row)), with_bcast(row.ours)
    if isinstance(ours, tuple):
        assert len(theirs) == len(ours)
    else:
        theirs, ours = [theirs], [ours]
    for their, our in zip(theirs, ours, strict=True):
        np.testing.assert_array_equal(our, np.asarray(their), strict=isinstance(our, np.ndarray))


@pytest.mark.parametrize("page", [DOCS.parent / "README.md", DOCS / "index.md"], ids=lambda page: page.name)
def test_pages_state_the_gains_of_the_table(page):
    table = (
        (DOCS.parent / "benchmarks" / "lines.md").read_text(encoding="utf-8").partition("\n\n")[2].partition("\n\n")[0]
    )
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    assert cells[0][2] == "3"
    gains = [float(row[2]) for row in cells[2:]]
    said = " ".join(page.read_text(encoding="utf-8").split())
    assert "rows of 3 items" in said
    assert "take between a third and a hundredth of NumPy's time" in said
    assert round(min(gains)) == 3
    assert 80 < max(gains) < 125
    assert len(gains) == 12


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_examples_of_a_page(page):
    for module in re.findall(r"^>>> import bcast.(.*)", page.read_text(encoding="utf-8"), re.M):
        loaded(module)
    assert doctest.testfile(str(page), module_relative=False, encoding="utf-8").failed == 0


def test_reference_has_all_that_is_public():
    """Each table of the reference names functions of the current module, and each function has a page by `toctree`.

    Functions under the names of ufuncs have one table of literals.
    """
    listed = {}
    text = (DOCS / "api.rst").read_text(encoding="utf-8")
    named = text[text.index(".. list-table::") : text.index("Gradients\n---")]
    for line in text.splitlines():
        if module := re.fullmatch(r"\.\. currentmodule:: (.+)", line):
            names = listed.setdefault(module[1], [])
        elif name := re.fullmatch(r"   (\w+)", line) or re.fullmatch(r"\.\. data:: (\w+)", line):
            names.append(name[1])
    assert list(listed) == ["bcast", "bcast.dask", "bcast.onnx"]
    listed["bcast"] += re.findall(r"``(\w+)``", named)
    for module, names in listed.items():
        assert sorted(names) == sorted(loaded_with(module).__all__)


def lines_of(section):
    """Return the pairs of lines in a section of the page of replacements: a cell may have several."""
    page = (DOCS / "replacements.md").read_text(encoding="utf-8")
    table = page.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    pairs = []
    for row in re.findall(r"^\| (`.*)\|$", table, re.M):
        theirs, ours = [re.findall("`(.*?)`", cell) for cell in row.split(" | ")[:2]]
        pairs += zip(theirs, ours * len(theirs) if len(ours) == 1 else ours, strict=True)
    return pairs


def names_of_lines():
    points = np.random.default_rng(0).random((40, 3))
    names = {"points": points, "row": points[0] + 0.1, "column": points[:, :1], "mask": points[:, :1] > 0.5}
    names |= {"image": (points * 255).astype(np.uint8).reshape(5, 8, 3), "x": points, "p": points, "q": points[::2]}
    return names | {"np": np, "bcast": bcast}


def with_pandas(names):
    pandas = loaded("pandas")
    return names | {"df": pandas.DataFrame(names["points"], columns=list("abc"))}


def with_xarray(names):
    xarray = loaded("xarray")
    data = xarray.DataArray(names["points"].astype("f4").reshape(5, 8, 3), dims=("time", "lat", "lon"))
    return names | {"xr": xarray, "data": data, "climate": data.mean("time")}


def with_scipy(names):
    loaded("scipy.stats")
    loaded("scipy.spatial.distance")
    return names | {"scipy": loaded("scipy")}


LIBRARIES = {"NumPy": dict, "pandas": with_pandas, "xarray": with_xarray, "SciPy and scikit-learn": with_scipy}
LINES = [(library, *pair) for library in LIBRARIES for pair in lines_of(library) if "Scaler" not in pair[0]]


def test_lines_are_read():
    assert len(LINES) == 22 + 6 + 7 + 3


@pytest.mark.parametrize(("library", "theirs", "ours"), LINES, ids=[theirs for _, theirs, _ in LINES])
def test_our_line_is_theirs(library, theirs, ours):
    names = LIBRARIES[library](names_of_lines())
    expected, found = eval(theirs, names), eval(ours, names)
    assert np.shape(found) == np.shape(expected)
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-5, atol=1e-6)
    if library == "xarray":
        assert found.dims == expected.dims


def loaded_with(module):
    if module != "bcast":
        loaded(module.rpartition(".")[2])
    return importlib.import_module(module)


def test_command_line_has_all_options(capsys):
    page = (DOCS / "command-line.md").read_text(encoding="utf-8")
    for command in ("apply", "bench"):
        with pytest.raises(SystemExit, match="0"):
            main([command, "--help"])
        options = set(re.findall(r"(--[a-z-]+)", capsys.readouterr().out))
        assert options > {"--help"}
        assert not [option for option in options if option not in page]
