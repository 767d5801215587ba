"""The house of ARCHITECTURE.md: imports, cimports and includes point down, never in a circle, as its picture shows."""

import importlib.util
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1]


def house():
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


def test_the_picture_is_drawn_from_the_code():
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    picture = HOUSE.draw(HOUSE.arrows(HOUSE.read_sources(HOUSE.SOURCES)))
    assert f"```text\n{picture}```\n" in page, "run: python docs/house.py --write"


def test_modules_are_not_made_of_parts():
    """No tool can parse a part of a module alone, or see what it uses."""
    assert not list(HOUSE.SOURCES.rglob("*.pxi"))
    part = {"_copy/run.pyx": 'include "loops.pxi"\n'}
    assert HOUSE.unread(part) == [("_copy/run.pyx", 'include "loops.pxi"')]


def test_no_arrow_is_written_so_that_it_is_not_read():
    assert HOUSE.unread(HOUSE.read_sources(HOUSE.SOURCES)) == []
