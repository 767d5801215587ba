"""The rules of ARCHITECTURE.md: imports, cimports and includes point downwards in its picture, never in a circle.

All thresholds are in one file, and each long function has a comment that gives the reason.
"""

import importlib.util
import re
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

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
# is derived from a number of that file, or becomes one.
FACTS = {
    "limits of NumPy and of the system": """
        BLOCKS_MAX CONTEXT_SIZE HUGE_PAGE LAST_OF_NUMPY MADE_BY_USERS MAX_AXES MAX_RANK MOST_AXES OF_PACKAGES
        PF_AVX2_INSTRUCTIONS_AVAILABLE PF_SSSE3_INSTRUCTIONS_AVAILABLE SURELY_SMALL numpys_float16""",
    "formats of numbers": """
        EXACT_BITS HALF_MAX LEAST_SQUARES MOST_BYTE_TERMS MOST_DECIMALS MOST_SQUARES MOST_SWAPPED
        MOST_COUNT MOST_INTEGERS MOST_TERMS SAFE_BITS TINY WIDEST doublings short_terms""",
    "the CPU": "CACHE_SETS_BYTES",
    "as many as a kernel takes at once": """
        SEARCHED_COLUMNS at_once block_bytes bulk_streams bulk_terms columns_at_once count most runs_at_once
        spreads_at_once streams terms_ahead tried""",
    "registers, and what they hold": """
        BCAST_GROUP_VECTORS BCAST_ITEM_VECTORS BCAST_SPAN_BYTES BCAST_VECTOR_BYTES BCAST_WINDOW_BYTES lanes
        register_bytes""",
    "room in structs, in tables and on the stack": """
        BCAST_MAX_HELPERS CHUNK IDLE_MAX_BLOCKS LOOPS_KEPT MAX_OPERANDS MAX_PARTS MAX_STEPS MOST_FOLDED MOST_GIVEN
        MOST_ROWS MOST_SHARES_OF_ROWS PACKED_BYTES PACKED_EXACTLY PACKED_VECTORS REPEATED_AT_ONCE SPREAD_BYTES
        STEPS_OF_UFUNC plain_results""",
    "memory that a chain may take": "PARTS_AT_ONCE THREAD_BYTES",
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
ARITHMETIC = re.compile(r"[-+*/<>()\d ]+")
KERNELS = ("simd/", "_runtime/vectors")
BEFORE = r"(?<![<>])[<>]=?(?![<>])|//|\bm(?:in|ax)\([^()]*,|(?<!\*)\*(?!\*)"
COMPARED = re.compile(rf"(?:{BEFORE}) *(?:<\w+> *)?-?\d+(?![\w.])|-?(?<![\w.])\d+ *(?:[<>](?![<>])|//)")


def named_numbers(name, text):
    """Yield the names of numbers above 2 in a source, unless they are `FACTS`; in kernels, those of numbers alone."""
    facts = " ".join(FACTS.values()).split()
    pattern = DEFINED if name.endswith(".h") else NAMED
    for found in pattern.findall(text):
        each, value = filter(None, found)
        value = value.partition("/*")[0]
        if any(kernels in name for kernels in KERNELS) and not ARITHMETIC.fullmatch(value):
            continue  # it follows from the sizes of items and registers
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


def test_no_threshold_is_outside_of_the_tuning_file():
    wrong = []
    for path in sorted(HOUSE.SOURCES.rglob("*")):
        name = path.relative_to(HOUSE.SOURCES).as_posix()
        is_source = path.suffix in (".py", ".pyx", ".pxd", ".h") and path.stem != "tuning"
        if is_source and name.startswith(CORES):
            wrong += [(name, each) for each in thresholds(name, path.read_text(encoding="utf-8"))]
    assert wrong == []


def test_a_threshold_is_seen():
    assert thresholds("_api/a.py", "MANY_ITEMS = 1 << 18\n") == ["MANY_ITEMS"]
    assert thresholds("a.pyx", "cdef enum:\n    SHORT_BYTES = 16      # of a row\n") == ["SHORT_BYTES"]
    assert thresholds("a.pyx", "    if size > 64 and n // 16 < min(left, 512):\n") == ["> 64", "// 16", "min(left, 512"]
    assert thresholds("a.h", "#define BCAST_MANY 4096\n") == ["BCAST_MANY"]
    assert thresholds("_a/simd/a.inc.h", "constexpr ptrdiff_t many = 2 * 64;  /* items */\n") == ["many"]
    assert thresholds("_a/simd/a.inc.h", "constexpr int registers = 64 / register_bytes;\n") == []
    assert thresholds("a.py", "MANY_ITEMS = 2 * SHARE_ITEMS\n") == []


# ---- Functions: long ones say why they are clearer whole ----

# A function beyond a limit has a comment with the words "clearer whole", which says why. One with many parameters says
# why they come "one by one", or it is public, and users give it what it takes. A comment before several functions,
# followed by a blank line, speaks for all of them.
LIMITS = {"lines": 50, "branches": 12, "locals": 10, "parameters": 6}
REASONS = dict.fromkeys(LIMITS, "clearer whole") | {"parameters": "one by one"}
HEAD_IN_CYTHON = re.compile(r"^( *)(?:cpdef|cdef|def)\b[^=\n]*?\b(\w+)\(", re.MULTILINE)
HEAD_IN_C = re.compile(
    r"^(?! |#|struct|enum|namespace)[^\n;{}]*?\b(\w+)\(((?:[^(){};]|\([^()]*\))*)\)\s*\{", re.MULTILINE
)
WORDS = re.compile(r"\b(?:if|elif|else|for|while|and|or|except|case)\b")
MARKS = re.compile(r"\b(?:if|for|while|case)\b|&&|\|\||\?")
TEXTS = re.compile(r'"""(?:.|\n)*?"""|"[^"\n]*"|\'[^\'\n]*\'|#[^\n]*')
PUBLIC = set(re.findall(r"^def (\w+)", (HOUSE.SOURCES / "__init__.pyi").read_text("utf-8"), re.MULTILINE))


class Function(NamedTuple):
    """A function's name, what is said in it and about it, and its measures, by the names of `LIMITS`."""

    name: str
    comments: str
    measures: dict[str, int]


def blank(text, pattern):
    """Return a text in which what matches a pattern is spaces."""
    return pattern.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def before(text, at):
    """Return the lines just before a place, up to a blank one."""
    return text[:at].rpartition("\n\n")[2]


def pieces(text):
    """Split the text between brackets at its commas, but not inside of inner brackets."""
    while (inner := re.sub(r"\([^()]*\)|\[[^][]*\]|\{[^{}]*\}|<[^<>]*>", "", text)) != text:
        text = inner
    return [piece.strip() for piece in text.split(",") if piece.strip() not in ("", "*", "/", "void", "self", "cls")]


def end_of(text, at):
    """Return where the bracket ends that begins at a place."""
    depth = 0
    for place in range(at, len(text)):
        depth += (text[place] in "([{") - (text[place] in ")]}")
        if depth == 0:
            return place
    raise ValueError(f"a bracket at {at} does not end")


def functions_in_cython(text):
    """Yield the functions of a source in Python or Cython."""
    code = blank(text, TEXTS)
    headings = [found.span() for found in re.finditer(r"(?<=\n\n)(?:# .*\n)+(?=\n)", text)]
    for head in HEAD_IN_CYTHON.finditer(code):
        closed = end_of(code, head.end() - 1)
        colon = re.compile(r"[^\n(]*:[ ]*\n").match(code, closed + 1)
        if not colon:
            continue  # a declaration, or a function in a line
        indent = len(head[1])
        body = re.compile(rf"(?:[ ]{{{indent + 1},}}[^\n]*\n|[ ]*\n)*").match(code, colon.end())
        lines = [line for line in body[0].split("\n") if line.strip()]
        heading = next((text[begin:end] for begin, end in reversed(headings) if end <= head.start()), "")
        yield Function(
            name=head[2],
            comments=heading + before(text, head.start()) + text[head.start() : body.end()],
            measures={
                "lines": len(lines),
                "branches": len(WORDS.findall(body[0])),
                "locals": sum(len(pieces(found)) for found in re.findall(r"^ +cdef (.*)", body[0], re.MULTILINE)),
                "parameters": len(pieces(code[head.end() : closed])),
            },
        )


def functions_in_c(text):
    """Yield the functions of a header or a source in C or C++."""
    code = blank(text, re.compile(r'/\*(?:.|\n)*?\*/|//[^\n]*|"[^"\n]*"|\'[^\'\n]*\''))
    for head in HEAD_IN_C.finditer(code):
        end = end_of(code, head.end() - 1)
        lines = [line for line in code[head.end() : end].split("\n") if line.strip()]
        yield Function(
            name=head[1],
            comments=before(text, head.start()) + text[head.start() : end],
            measures={
                "lines": len(lines),
                "branches": len(MARKS.findall(code, head.end(), end)),
                "parameters": len(pieces(head[2])),
            },
        )


def too_long(name, text):
    """Return the functions of a source beyond a limit, which do not say why, and the measures that are."""
    functions = functions_in_c if name.endswith((".h", ".cpp")) else functions_in_cython
    return [
        (function.name, measure)
        for function in functions(text)
        for measure, count in function.measures.items()
        if count > LIMITS[measure]
        and not (measure == "parameters" and function.name.removeprefix("take_") in PUBLIC)
        and REASONS[measure] not in re.sub(r"\s*\n\s*[#*]?\s*", " ", function.comments).lower()
    ]


def test_long_functions_say_why():
    wrong = []
    for path in sorted(HOUSE.SOURCES.rglob("*")):
        if path.suffix in (".py", ".pyx", ".h", ".cpp"):
            name = path.relative_to(HOUSE.SOURCES).as_posix()
            wrong += [(name, *each) for each in too_long(name, path.read_text(encoding="utf-8"))]
    assert wrong == []


def test_a_long_function_is_seen():
    many = "a, b, c, d, e, f, g"
    assert too_long("a.py", f"def of({many}):\n    return a\n") == [("of", "parameters")]
    assert too_long("a.py", f"# They come one by one.\ndef of({many}):\n    return a\n") == []
    assert too_long("a.py", f"def broadcast({many}):\n    return a\n") == []
    assert too_long("a.h", f"int of({many})\n{{\n    return a;\n}}\n") == [("of", "parameters")]
    assert too_long("a.pyx", "cdef int of() noexcept:\n    cdef int a, b = 1" + ", c" * 9 + "\n") == [("of", "locals")]
    branches = "def of(a):\n" + "    if a:\n        pass\n" * 13
    assert too_long("a.pyx", branches) == [("of", "branches")]
    assert too_long("a.pyx", branches + "    # Clearer\n    # whole: a line for each.\n") == []
    assert too_long("a.pyx", "x = 1\n\n# Clearer whole.\n\n" + branches) == []
    assert too_long("a.py", "def of(a):\n" + "    a\n" * 51) == [("of", "lines")]


# ---- Lines ----


def long_lines(text):
    """Return the numbers of a source's lines of more than 120 columns."""
    return [number for number, line in enumerate(text.split("\n"), 1) if len(line) > 120]


def test_no_line_is_longer_than_120_columns():
    wrong = {}
    for folder in ("src", "tests", "benchmarks", "docs"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".h", ".cpp", ".pyx", ".pxd", ".py", ".pyi"):
                wrong[path.relative_to(ROOT).as_posix()] = long_lines(path.read_text(encoding="utf-8"))
    assert {name: lines for name, lines in wrong.items() if lines} == {}
    assert len(wrong) > 100  # it reads them
    assert long_lines("x\n" + "y" * 120 + "\n" + "z" * 121) == [3]
