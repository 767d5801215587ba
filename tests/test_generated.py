"""The C code that Cython generates: no function in it drops an exception."""

import re
from pathlib import Path

import pytest
from test_packaging import build, sources  # noqa: F401 (fixtures)


def dropping(text):
    """Name the functions of generated C that print exceptions and continue: `noexcept` functions that run Python."""
    return re.findall(r'__Pyx_WriteUnraisable\("([^"]+)"', text)


def generated(path, directives, folder):
    compiler = pytest.importorskip("Cython.Compiler.Main")
    out = folder / "generated.c"
    options = compiler.CompilationOptions(output_file=str(out), include_path=["src"], compiler_directives=directives)
    assert compiler.compile(str(path), options).num_errors == 0
    return out.read_text()


def test_no_function_drops_an_exception(build, tmp_path):  # noqa: F811
    """The generated files of the build are checked, if they were made from the current sources."""
    for source in build["SOURCES"]:
        made = build["MADE"] / build["PACKAGE"] / Path(source).with_suffix(".c")
        stamp = made.with_name(f"{made.name}.key")
        is_fresh = stamp.exists() and stamp.read_text("utf-8").startswith(build["key_of"](source))
        text = made.read_text() if is_fresh else generated(build["PACKAGE"] / source, build["DIRECTIVES"], tmp_path)
        assert dropping(text) == [], source


def test_one_that_does_is_found(tmp_path):
    source = tmp_path / "planted.pyx"
    source.write_text("cdef int size(object item) noexcept:\n    return len(item)\n\nprint(size([]))\n")
    assert dropping(generated(source, {"language_level": 3}, tmp_path)) == ["planted.size"]
