"""The house of ARCHITECTURE.md: imports, cimports and includes point down, never in a circle, as its picture shows.

And its thresholds are in one file.
"""

import importlib.util
import re
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


# Numbers with a name outside `tuning.h`, and what each of them follows from. What a measurement chooses is not here: it
# is derived from a number of that file, or becomes one. (What kernels hold in registers is theirs, in `simd`.)
FACTS = {
    "limits of NumPy and of the system": """
        BLOCKS_MAX CONTEXT_SIZE HUGE_PAGE LAST_OF_NUMPY MADE_BY_USERS MAX_AXES MAX_RANK MOST_AXES OF_PACKAGES
        PF_AVX2_INSTRUCTIONS_AVAILABLE PF_SSSE3_INSTRUCTIONS_AVAILABLE SURELY_SMALL""",
    "formats of numbers": """
        EXACT_BITS HALF_MAX LEAST_SQUARES MOST_BYTE_TERMS MOST_DECIMALS MOST_DOUBLINGS MOST_SQUARES MOST_SWAPPED
        MOST_TERMS ROUNDINGS SAFE_BITS SLACK WIDEST""",
    "the CPU": "CACHE_SETS_BYTES",
    "as many as a kernel takes at once": "SEARCHED_COLUMNS SHORT_ROW_BYTES",
    "room in structs, in tables and on the stack": """
        BCAST_MAX_HELPERS CHUNK IDLE_MAX_BLOCKS LOOPS_KEPT MAX_OPERANDS MAX_PARTS MAX_STEPS MOST_FOLDED MOST_GIVEN
        PACKED_BYTES PACKED_EXACTLY PACKED_VECTORS REPEATED_AT_ONCE SPREAD_BYTES STEPS_OF_UFUNC""",
    "memory that a chain may take": "PARTS_AT_ONCE THREAD_BYTES",
    "a sample": "SAMPLED",
    "other units of numbers of tuning.h": "BCAST_LATE_SECONDS BCAST_SPIN_SECONDS",
    "texts": "MOST_ITEMS MOST_SHOWN",
    "numbers that are names": """
        A_COMPLEX A_PRODUCT A_SUM BOTH CLIP_FUSED FROM_BYTES FUSED HYPOT_COMPARED NONE NOT_FUSED OTHER OWN_LOOPS PARTS
        PDPD REASONS SATURATE TOO_SMALL TO_BYTES TO_CUT_BYTES TO_HALVES""",
}
# Numbers without a name that lines compare something with, or multiply or divide by.
FACTS_IN_LINES = {
    "_api/adjoints.py": ["<= 16"],  # NumPy's numbers of dtypes
    "_api/converted.py": ["// 64"],  # of the largest integer
    "_api/patching.pyx": ["-65 <", "< 65"],  # axes
    "_apply/ufuncs.pyx": ["512", "* 31", "* 40503"],  # items on the stack, and a hash
    "_copy/run.pyx": [">= 16"],  # bytes of a vector
    "_reduce/run.pyx": ["4000", "-4000"],  # exponents
    "_rules/arguments.py": ["<= 10"],  # NumPy's numbers of dtypes
}
CORES = ("_api", "_apply", "_copy", "_elementwise", "_kernel", "_nest", "_reduce", "_reduction", "_rules", "_runtime")
NAMED = re.compile(
    r"^ *(?:cdef [\w ]+ )?([A-Z][A-Z_0-9]{2,})(?: *:[^=]*)? *="  # a name, perhaps with a type
    r"(?! *[\[\w]*[\[(])([^#\"'\n]*\d[^#\"'\n]*)",  # numbers, but no call or list
    re.MULTILINE,
)
DEFINED = re.compile(r"^ *#define (\w+) +(\(?[\d(][^\n]*)|^ *(?:static )?constexpr \w+ (\w+) = ([^;\n]*)", re.MULTILINE)
NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")
BEFORE = r"(?<![<>])[<>]=?(?![<>])|//|\bm(?:in|ax)\([^()]*,|(?<!\*)\*(?!\*)"
COMPARED = re.compile(rf"(?:{BEFORE}) *(?:<\w+> *)?-?\d+(?![\w.])|-?(?<![\w.])\d+ *(?:[<>](?![<>])|//)")


def named_numbers(name, text):
    """Yield the names of numbers above 2 in a source, unless they are `FACTS`."""
    facts = " ".join(FACTS.values()).split()
    pattern = DEFINED if name.endswith(".h") else NAMED
    for found in pattern.findall(text):
        each, value = filter(None, found)
        if each not in facts and any(int(number) > 2 for number in NUMBER.findall(value)):
            yield each


def numbers_in_lines(name, text):
    """Yield what lines compare with numbers above 8, or multiply or divide by them."""
    facts = tuple(FACTS_IN_LINES.get(name, ()))
    for line in text.split("\n"):
        code = re.sub(r'"[^"]*"', "", line.partition("#")[0])
        for each in () if NAMED.match(line) else COMPARED.findall(code):
            if int(NUMBER.search(each)[0]) > 8 and not each.endswith(facts):
                yield each


def thresholds(name, text):
    """Return the numbers of a source that may be thresholds."""
    text = re.sub(r'"""(?:.|\n)*?"""', "", text)
    return [*named_numbers(name, text), *([] if name.endswith(".h") else numbers_in_lines(name, text))]


def test_no_threshold_is_beside_the_file_of_all():
    wrong = []
    for path in sorted(HOUSE.SOURCES.rglob("*")):
        name = path.relative_to(HOUSE.SOURCES).as_posix()
        is_kernel = "simd" in name or path.name in ("tuning.h", "tuning.pxd") or "vectors" in path.name
        if path.suffix in (".py", ".pyx", ".pxd", ".h") and name.startswith(CORES) and not is_kernel:
            wrong += [(name, each) for each in thresholds(name, path.read_text(encoding="utf-8"))]
    assert wrong == []


def test_a_threshold_is_seen():
    assert thresholds("_api/a.py", "MANY_ITEMS = 1 << 18\n") == ["MANY_ITEMS"]
    assert thresholds("a.pyx", "cdef enum:\n    SHORT_BYTES = 16      # of a row\n") == ["SHORT_BYTES"]
    assert thresholds("a.pyx", "    if size > 64 and n // 16 < min(left, 512):\n") == ["> 64", "// 16", "min(left, 512"]
    assert thresholds("a.h", "#define BCAST_MANY 4096\n") == ["BCAST_MANY"]
    assert thresholds("a.py", "MANY_ITEMS = 2 * SHARE_ITEMS\n") == []
