"""Draw the house of ARCHITECTURE.md from the imports of the sources: ``python docs/house.py`` prints the picture.

``python docs/house.py --write`` puts it into ARCHITECTURE.md. A room is a folder of the package, or a module beside the
folders. Each line shows a room, its modules (one that uses others before these) and the other rooms that it uses.
tests/test_house.py checks that no import, cimport or include points up.
"""

import ast
import itertools
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "src/bcast"
PAGE = ROOT / "ARCHITECTURE.md"

# From the top down. A room may use rooms on lower floors. On the uppermost floor, rooms may use each other; so may the
# modules of one room.
FLOORS = (
    ("__init__", "__main__", "typing", "numpy", "onnx", "dask", "_cli", "_benchmark"),
    ("_dask",),
    ("_api",),
    ("_kernel", "_reduction", "_elementwise"),
    ("_apply",),
    ("_copy", "_reduce"),
    ("_nest", "_rules"),
    ("_runtime",),
)

IMPORT = re.compile(r"^ *(?:from (bcast[\w.]*) c?import (\(?.*)|c?import (bcast[\w.]*))", re.MULTILINE)
INCLUDE = re.compile(r'^ *(?:cdef extern from|#include) "([\w./]+\.h)"', re.MULTILINE)
PLAIN_IMPORT = re.compile(r" *(?:from bcast\.[\w.]+ c?import [\w(].*|c?import bcast[\w.]*)")
PARTS = (".cpp", ".h")  # files that are included by others
FOREIGN = re.compile(r"numpy/|Python\.h$|[a-z]\w*(/\w+)?\.h$")
PICTURE = re.compile(r"(?<=```text\n)\| room .*?(?=```)", re.DOTALL)

COLUMNS = (12, 44, 54)
RULE = "+" + "+".join(["-" * (width + 2) for width in COLUMNS]) + "+"

Graph = dict[str, set[str]]


def read_sources(folder: Path) -> dict[str, str]:
    """Return the text of each source of the package, by its path within the package."""
    suffixes = {".py", ".pyx", ".pxd", *PARTS}
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*"))
        if path.suffix in suffixes
    }


def modules_named(path: str, text: str) -> Iterator[str]:
    """Yield the dotted names that a source imports or cimports, and those in them that could be modules."""
    if path.endswith(".py"):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                yield from (each.name for each in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield node.module
                yield from (f"{node.module}.{each.name}" for each in node.names)
    else:
        for found in IMPORT.finditer(text):
            yield found[1] or found[3]
            yield from (f"{found[1]}.{name}" for name in re.findall(r"\w+", found[2] or ""))


def arrows(sources: dict[str, str]) -> Graph:
    """Return which modules, headers and parts each of them uses; a module is a source and its declarations."""
    modules = {path.rpartition(".")[0] for path in sources if not path.endswith(PARTS)}
    graph: Graph = {}
    for path, text in sources.items():
        own = path if path.endswith(PARTS) else path.rpartition(".")[0]
        used = graph.setdefault(own, set())
        if not path.endswith((".cpp", ".h")):
            for name in modules_named(path, text):
                where = "/".join(name.split(".")[1:])
                if name.split(".")[0] == "bcast":
                    used |= {where or "__init__", f"{where}/__init__"} & modules
        for name in INCLUDE.findall(text):
            beside = resolved(PurePosixPath(path).parent / name)
            used |= {beside, name} & sources.keys()
        used.discard(own)
    return graph


def unread(sources: dict[str, str]) -> list[tuple[str, str]]:
    """Return the lines that could name modules or headers of the package in ways that `arrows` does not read."""
    found = []
    headers = {path.rpartition("/")[2] for path in sources if path.endswith(PARTS)}
    for path, text in sources.items():
        for line in text.splitlines():
            code = line.strip().removeprefix(">>> import bcast")  # of examples
            if path.endswith(".py"):
                wrong = re.match(r"from +\.", code) or ("import_module(" in code and "bcast" in code)
            elif re.search(r"\bimport\b|\bcimport\b", code) and re.search(r"\bbcast\b|from +\.", code):
                wrong = not PLAIN_IMPORT.fullmatch(line)
            elif re.match(r"# *include\b|include\b *[\"']|cdef +extern +from\b", code):
                names = INCLUDE.findall(line)
                ours = [name for name in names if {name, resolved(PurePosixPath(path).parent / name)} & sources.keys()]
                name = re.split("[\"'<>]", code + '"')[1]
                wrong = not ours and (name.rpartition("/")[2] in headers or not FOREIGN.match(name))
            else:
                wrong = False
            if wrong:
                found.append((path, code))
    return found


def resolved(path: PurePosixPath) -> str:
    """Return a path without its `..`."""
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)


def room_of(name: str) -> str:
    """Return the room of a module or header."""
    return name.partition("/")[0]


def draw(graph: Graph) -> str:
    """Draw the floors: each room with its modules, its folder of leaves and the rooms that it uses."""
    rooms = [room for floor in FLOORS for room in floor]
    lines = [line("room", "modules", "uses"), RULE]
    for floor in FLOORS:
        for room in floor:
            own = [name for name in graph if room_of(name) == room]
            modules = sorted([name for name in own if not name.endswith(PARTS)], key=lambda name: depth(graph, name))
            beside = [name for name in modules if name.count("/") < 2]
            inside = [name.removeprefix(f"{room}/") for name in beside if name not in (room, f"{room}/__init__")]
            folders = sorted({name.split("/")[1] + "/" for name in own if name.count("/") == 2})
            used = {room_of(each) for name in own for each in graph[name]} - {room}
            named = textwrap.wrap(" ".join(inside + folders), COLUMNS[1])
            below = textwrap.wrap(" ".join([each for each in rooms if each in used]), COLUMNS[2])
            lines += [line(*cells) for cells in itertools.zip_longest([room], named, below, fillvalue="")]
        lines.append(RULE)
    return "\n".join(lines) + "\n"


def line(room: str, modules: str, uses: str) -> str:
    """Draw one line of the picture."""
    return f"| {room:<{COLUMNS[0]}} | {modules:<{COLUMNS[1]}} | {uses:<{COLUMNS[2]}} |"


def depth(graph: Graph, name: str) -> tuple[int, str]:
    """Return minus the length of the longest chain of modules that `name` uses in its room, and the name."""
    chains = [depth(graph, each)[0] for each in graph[name] if room_of(each) == room_of(name)]
    return min(chains, default=0) - 1, name


def main() -> None:
    """Print the picture, or write it into the page."""
    picture = draw(arrows(read_sources(SOURCES)))
    if "--write" in sys.argv[1:]:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(PICTURE.sub(lambda _: picture, page), encoding="utf-8")
    else:
        print(picture, end="")


if __name__ == "__main__":
    main()
