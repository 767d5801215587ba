"""What Cython makes of the sources: nothing in them drops an exception."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted(
    path
    for path in (ROOT / "src" / "bcast").rglob("*.py*")
    if path.suffix == ".pyx" or (path.suffix == ".py" and path.with_suffix(".pxd").exists())
)
DIRECTIVES = {"annotation_typing": False, "freethreading_compatible": True, "language_level": 3}


def dropping(source, folder):
    """Name the functions of a source that print exceptions and go on: `noexcept` ones that run Python."""
    compiler = pytest.importorskip("Cython.Compiler.Main")
    options = compiler.CompilationOptions(
        output_file=str(folder / "generated.c"), include_path=[str(ROOT / "src")], compiler_directives=DIRECTIVES
    )
    result = compiler.compile(str(source), options)
    assert result.num_errors == 0
    return re.findall(r'__Pyx_WriteUnraisable\("([^"]+)"', (folder / "generated.c").read_text())


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_no_function_drops_an_exception(source, tmp_path):
    assert dropping(source, tmp_path) == []


def test_one_that_does_is_found(tmp_path):
    source = tmp_path / "planted.pyx"
    source.write_text("cdef int size(object item) noexcept:\n    return len(item)\n\nprint(size([]))\n")
    assert dropping(source, tmp_path) == ["planted.size"]
