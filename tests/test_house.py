"""The house of ARCHITECTURE.md: imports, cimports and includes point down, never in a circle, as its picture shows."""

import importlib.util
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def house():
    """Return the script that draws the house."""
    spec = importlib.util.spec_from_file_location("house", ROOT / "docs/house.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


HOUSE = house()
FLOOR_OF = {room: floor for floor, rooms in enumerate(HOUSE.FLOORS) for room in rooms}


def wrong_arrows(graph):
    """Return the arrows that point up, or across from folder to folder."""
    wrong = []
    for user, used in graph.items():
        for each in used:
            above, below = (FLOOR_OF[HOUSE.room_of(name)] for name in (user, each))
            same = HOUSE.room_of(user) == HOUSE.room_of(each)
            if above > below or (above == below and above and not same):
                wrong.append((user, each))
    return sorted(wrong)


def test_every_arrow_points_down():
    graph = HOUSE.arrows(HOUSE.read_sources(HOUSE.SOURCES))
    assert sum(map(len, graph.values())) > 60  # it sees them
    assert {HOUSE.room_of(name) for name in graph} == FLOOR_OF.keys()
    assert wrong_arrows(graph) == []
    tuple(TopologicalSorter(graph).static_order())


@pytest.mark.parametrize(
    ("path", "text", "arrow"),
    [
        ("_rules/alignment.py", "def f():\n    from bcast._api import tiling\n", ("_rules/alignment", "_api/tiling")),
        ("_runtime/pages.pyx", "from bcast._kernel cimport (\n    x)\n", ("_runtime/pages", "_kernel")),
        ("_copy/walk.pxd", "from bcast._sum.core cimport Axis\n", ("_copy/walk", "_sum/core")),
        ("_sum/plan.pxi", "from bcast._adjoint cimport sum_onto\n", ("_sum/plan.pxi", "_adjoint")),
        ("_runtime/cpu.pyx", 'include "../_sum/plan.pxi"\n', ("_runtime/cpu", "_sum/plan.pxi")),
        ("_runtime/cpu.pyx", 'cdef extern from "_copy/simd/shuffle.h":\n', ("_runtime/cpu", "_copy/simd/shuffle.h")),
        ("_runtime/pool.h", '#include "../_sum/simd/sum.h"\n', ("_runtime/pool.h", "_sum/simd/sum.h")),
        ("_api/tiling.py", "import bcast\n", ("_api/tiling", "__init__")),
    ],
)
def test_an_arrow_that_points_up_is_found(path, text, arrow):
    sources = HOUSE.read_sources(HOUSE.SOURCES)
    assert path in sources
    sources[path] += "\n" + text
    assert arrow in wrong_arrows(HOUSE.arrows(sources))


def test_a_circle_is_found():
    sources = HOUSE.read_sources(HOUSE.SOURCES)
    sources["_runtime/system.py"] += "\nimport bcast._runtime.threads\n"
    with pytest.raises(CycleError):
        tuple(TopologicalSorter(HOUSE.arrows(sources)).static_order())


def test_the_picture_is_drawn_from_the_code():
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    picture = HOUSE.draw(HOUSE.arrows(HOUSE.read_sources(HOUSE.SOURCES)))
    assert f"```text\n{picture}```\n" in page, "run: python docs/house.py --write"


def test_no_arrow_is_written_so_that_it_is_not_read():
    assert HOUSE.unread(HOUSE.read_sources(HOUSE.SOURCES)) == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("_rules/alignment.py", "from .._api import tiling"),
        ("_rules/alignment.py", "importlib.import_module('bcast._kernel')"),
        ("_runtime/pages.pyx", "from .._kernel cimport x"),
        ("_runtime/pages.pyx", "import os, bcast._kernel"),
        ("_runtime/pages.pyx", "x = 1; from bcast._kernel cimport x"),
        ("_runtime/pages.pyx", "from  bcast._kernel cimport x"),
        ("_runtime/pages.pyx", "from bcast cimport (_kernel)"),
        ("_runtime/pages.pyx", "cdef extern from '_copy/simd/shuffle.h':"),
        ("_runtime/pages.pyx", 'cdef extern from "bcast/_copy/simd/shuffle.h":'),
        ("_runtime/pages.pyx", 'cdef extern from "_runtime/missing.h":'),
        ("_runtime/pages.pyx", 'include "plan.pxi"'),
        ("_runtime/pool.h", "#include <../_copy/simd/shuffle.h>"),
    ],
)
def test_an_arrow_that_is_not_read_is_found(path, text):
    sources = HOUSE.read_sources(HOUSE.SOURCES)
    sources[path] += f"\n{text}\n"
    assert HOUSE.unread(sources) == [(path, text)]
