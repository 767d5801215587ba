"""Constructs that compiled modules must not use: Cython generates wrong C code for them, or compilers warn.

Cython 3.3.1 appends to a new list with `__Pyx_ListComp_AppendAndDecref`. If memory runs out, this function releases the
item's reference, and the code around it releases it again: the item's memory is freed too early, and others may write
to it. List comprehensions are compiled to such code, and so are displays with an item after a starred one, unless the
items are variables. A loop with `append` is correct.
"""

import ast
import io
import keyword
import re
import subprocess
import tokenize
from pathlib import Path

import pytest
from test_leaves import SOURCES, tool

HERE = Path(__file__).parents[1]


def compiled():
    for statement in ast.parse((HERE / "setup.py").read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "SOURCES":
            return [HERE / "src/bcast" / name for name in ast.literal_eval(statement.value)]
    raise AssertionError("setup.py has no SOURCES")


def unsafe_lists(source):
    """Return the numbers of the lines of a Python or Cython source on which a list of the wrong kind begins."""
    return sorted(line for *group, line in groups(source) if is_unsafe(*group))


def groups(source):
    """Yield the contents of each bracket: the token before it, the bracket, its tokens, its line.

    A bracket inside counts as one token. What stands behind `return` or `=` to the end of the line is a group, too.
    """
    opened = [("", "", [], 0)]
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        before, text, line = opened[-1][2][-1:], token.string, token.start[0]
        if token.type == tokenize.STRING and "f" in text.partition(text[-1])[0].lower():  # one token before Python 3.12
            for field in ast.walk(ast.parse(text)):
                if isinstance(field, ast.FormattedValue):
                    yield from ((*group, line) for *group, _ in groups(ast.unparse(field.value)))
        if text in ("(", "[", "{") or (text in ("return", "=") and len(opened) == 1):
            opened.append((*(before or [""]), text, [], line))
        elif text in (")", "]", "}"):
            yield opened.pop()
            opened[-1][2].append(text)
        elif token.type in (tokenize.NEWLINE, tokenize.ENDMARKER):
            yield from opened[1:]
            opened = [("", "", [], 0)]
        elif token.type not in (tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT):
            opened[-1][2].append(text)


def is_unsafe(before, bracket, tokens):
    """Return whether the contents of a bracket after a token are a list of the wrong kind."""
    is_named = before in (")", "]") or (before.isidentifier() and not keyword.iskeyword(before))
    is_call = is_named and bracket in ("(", "[")
    if "for" in tokens:
        is_list = bracket == "[" or (bracket == "(" and before in ("list", "sorted"))
        is_variable = tokens[0].isidentifier() and tokens[1] == "for" and "range" not in tokens  # which counts in C
        return is_list and not is_variable
    items = " ".join(tokens).rstrip(", ").split(" , ")
    starred = [item.startswith("*") for item in items]
    return bracket != "{" and not is_call and True in starred and not all(starred[starred.index(True) :])


@pytest.mark.parametrize("path", compiled(), ids=lambda path: path.name)
def test_no_list_is_made_by_an_append_that_frees_twice(path):
    lines = unsafe_lists(path.read_text(encoding="utf-8"))
    assert not lines, f"{path.name} makes lists by comprehensions or behind stars at lines {lines}: write a loop"


UNSAFE = (
    "x = [f(i) for i in y]",
    "x = tuple([i + 1 for i in y])",
    "x = y[[i[0] for i in y][0]]",
    "x = [i for i in [f(j) for j in y]]",
    "x = [i for i in range(3)]",
    "x = list(f(i) for i in y)",
    "x = sorted(f(i) for i in y)",
    "x = [\n    f(i)\n    for i in y  # so\n]",
    "x = f'{1}, {[f(i) for i in y]}'",
    "x = [*y, f(x)]",
    "isinstance(x, (*y, Z))",
    "return *y, f(x)",
    "x = *y, f(x)",
    "cdef list x = [<Py_ssize_t> y[i] for i in z]",
)
SAFE = (
    "x = [i for i in y if i]",
    "x = {f(i): 1 for i in y}",
    "x = any(f(i) for i in y)",
    "x = (-1, *shape[i:])",
    "x = [*y, *z]",
    "x = f(*y, z)",
    "def f(*args, a=[1, 2]): pass",
    "x = '[f(i) for i in y]'  # [f(i) for i in y]",
    "x = (a * b, c)",
    "cdef int f(char *x, int n) noexcept:\n    return x[0] * n",
)


@pytest.mark.parametrize("source", [*UNSAFE, *SAFE])
def test_the_check_finds_only_unsafe_code(source):
    assert unsafe_lists(f"y = 1\n{source}\n") == ([2] if source in UNSAFE else [])


@pytest.mark.parametrize("pattern", ["*.h", "*.pxd", "*.pyx"])
def test_no_name_is_a_macro_of_windows(pattern):
    for path in SOURCES.rglob(pattern):
        text = path.read_text(encoding="utf-8")
        if pattern == "*.h":
            names = set(re.findall(r"\w+", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)))
        else:
            names = {token.string for token in tokenize.generate_tokens(io.StringIO(text).readline)}
        assert not names & {"IN", "OUT", "OPTIONAL", "far", "interface", "near", "small"}, path


PLATFORMS = {"x86_64": (), "aarch64": ("--target=aarch64-linux-gnu", "-I/usr/aarch64-linux-gnu/include")}


@pytest.mark.parametrize("one_lane", [(), ("-DBCAST_ONE_LANE",)], ids=["vectors", "one lane"])
@pytest.mark.parametrize("options", PLATFORMS.values(), ids=PLATFORMS)
def test_clang_warns_of_nothing(options, one_lane):
    if options and not Path(options[1].removeprefix("-I")).exists():
        pytest.skip("needs the headers of aarch64")
    headers = (
        ("_copy/simd/kernels.h",),
        ("_reduce/simd/kernels.h", "_reduce/simd/pieces.h", "_runtime/stream.h"),
    )
    for group in headers:
        source = "".join(f'#include "{name}"\n' for name in group)
        warnings = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-function"]  # headers' functions are there for others
        command = [tool("clang"), *options, *one_lane, *warnings, "-fsyntax-only", "-xc", "-"]
        done = subprocess.run([*command, f"-I{SOURCES}"], input=source, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    for path in sorted(SOURCES.rglob("*.cpp")):
        warnings = ["-std=c++17", "-Wall", "-Wextra", "-Werror"]
        command = [tool("clang"), *options, *one_lane, *warnings, "-fsyntax-only", f"-I{SOURCES}"]
        done = subprocess.run([*command, str(path)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
