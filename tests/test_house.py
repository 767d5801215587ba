"""The house of ARCHITECTURE.md: imports, cimports and includes run downwards, and never in a circle."""

import ast
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path, PurePosixPath

import pytest

SOURCES = Path(__file__).parents[1] / "src/bcast"

# The uppermost first. A folder may use those on lower floors, and itself; users' modules may use each other.
FLOORS = (
    ("__init__", "__main__", "onnx", "_cli", "_benchmark"),
    ("_api",),
    ("_kernel", "_adjoint"),
    ("_copy", "_sum"),
    ("_rules", "_runtime"),
)
FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}

IMPORT = re.compile(r"^ *(?:from (bcast[\w.]*) c?import (\(?.*)|c?import (bcast[\w.]*))", re.MULTILINE)
INCLUDE = re.compile(r'^ *(?:cdef extern from|#include|include) "([\w./]+\.(?:h|pxi))"', re.MULTILINE)


def read_sources(folder):
    """Return the text of each source of the package, by its path in the package."""
    suffixes = {".py", ".pyx", ".pxd", ".h"}
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*"))
        if path.suffix in suffixes
    }


def modules_named(path, text):
    """Yield the dotted names that a source imports or cimports, and those that could be modules in them."""
    if path.endswith(".py"):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                yield from (each.name for each in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield node.module
                yield from (f"{node.module}.{each.name}" for each in node.names)
    else:
        for found in IMPORT.finditer(text):
            yield found[1] or found[3]
            yield from (f"{found[1]}.{name}" for name in re.findall(r"\w+", found[2] or ""))


def arrows(sources):
    """Return which module or header uses which others; a module is a source and its declarations."""
    modules = {path.rpartition(".")[0] for path in sources if not path.endswith(".h")}
    graph = {}
    for path, text in sources.items():
        own = path if path.endswith(".h") else path.rpartition(".")[0]
        used = graph.setdefault(own, set())
        if not path.endswith(".h"):
            for name in modules_named(path, text):
                where = "/".join(name.split(".")[1:])
                if name.split(".")[0] == "bcast":
                    used |= {where or "__init__", f"{where}/__init__"} & modules
        for name in INCLUDE.findall(text):
            beside = resolved(PurePosixPath(path).parent / name)
            used |= {beside, name} & sources.keys()
        used.discard(own)
    return graph


def resolved(path):
    """Return a path without its `..`."""
    parts = []
    for part in path.parts:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)


def wrong_arrows(graph):
    """Return the arrows that point up, or across from folder to folder."""
    wrong = []
    for user, used in graph.items():
        for each in used:
            above, below = (FLOOR_OF[name.partition("/")[0]] for name in (user, each))
            same = user.partition("/")[0] == each.partition("/")[0]
            if above > below or (above == below and above and not same):
                wrong.append((user, each))
    return sorted(wrong)


def test_every_arrow_points_down():
    graph = arrows(read_sources(SOURCES))
    assert sum(map(len, graph.values())) > 60  # it sees them
    assert {name.partition("/")[0] for name in graph} == FLOOR_OF.keys()
    assert wrong_arrows(graph) == []
    tuple(TopologicalSorter(graph).static_order())


@pytest.mark.parametrize(
    ("path", "text", "arrow"),
    [
        ("_rules/alignment.py", "def f():\n    from bcast._api import tiling\n", ("_rules/alignment", "_api/tiling")),
        ("_runtime/pages.pyx", "from bcast._kernel cimport (\n    x)\n", ("_runtime/pages", "_kernel")),
        ("_copy/walk.pxd", "from bcast._sum.plan cimport Axis\n", ("_copy/walk", "_sum/plan")),
        ("_runtime/cpu.pyx", 'cdef extern from "_copy/simd/shuffle.h":\n', ("_runtime/cpu", "_copy/simd/shuffle.h")),
        ("_runtime/pool.h", '#include "../_sum/simd/sum.h"\n', ("_runtime/pool.h", "_sum/simd/sum.h")),
        ("_api/tiling.py", "import bcast\n", ("_api/tiling", "__init__")),
    ],
)
def test_an_arrow_that_points_up_is_found(path, text, arrow):
    sources = read_sources(SOURCES)
    assert path in sources
    sources[path] += "\n" + text
    assert arrow in wrong_arrows(arrows(sources))


def test_a_circle_is_found():
    sources = read_sources(SOURCES)
    sources["_runtime/system.py"] += "\nimport bcast._runtime.threads\n"
    with pytest.raises(CycleError):
        tuple(TopologicalSorter(arrows(sources)).static_order())
