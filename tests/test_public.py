"""The public side of the package: names, version, signatures, examples, imports, type information."""

import ast
import doctest
import importlib
import importlib.metadata
import inspect
import pkgutil
import sys
from importlib.resources import files

import pytest
from _commands import printed

import bcast

SUBMODULES = {module.name for module in pkgutil.iter_modules(bcast.__path__)}
MODULES = [module.name for module in pkgutil.walk_packages(bcast.__path__, "bcast.") if not module.ispkg]
DEFINING_MODULES = {getattr(bcast, name).__module__ for name in bcast.__all__}

# Prints the modules that the import of bcast adds to a fresh interpreter, after NumPy and its own imports.
IMPORT = """
import sys
import numpy
before = set(sys.modules)
import bcast
print(*sorted(set(sys.modules) - before))
"""


def test_all_lists_the_public_names():
    public = {name for name in dir(bcast) if not name.startswith("_")} - SUBMODULES
    assert public == set(bcast.__all__)
    assert len(public) == len(bcast.__all__)


def test_type_checkers_import_the_same_names():
    stub = ast.parse(files("bcast").joinpath("__init__.pyi").read_text("utf-8"))
    lists = [node.value for node in stub.body if "__all__" in ast.unparse(node)]
    assert sorted(name for each in lists for name in ast.literal_eval(each)) == sorted(bcast.__all__)


def test_version_is_that_of_the_distribution():
    assert bcast.__version__ == importlib.metadata.version("bcast")


@pytest.mark.parametrize("name", bcast.__all__)
def test_signature_and_docstring(name):
    function = getattr(bcast, name)
    signature = inspect.signature(function)
    assert signature.return_annotation is not inspect.Signature.empty
    documented = inspect.getdoc(function)
    gives = not inspect.isclass(function) and signature.return_annotation not in (None, "None")
    for section in ("Returns", "Examples") if gives else ("Examples",):
        assert f"\n{section}\n{'-' * len(section)}\n" in documented
    for parameter in signature.parameters.values():
        assert parameter.annotation is not inspect.Parameter.empty
        assert parameter.name in documented.partition("\nReturns\n")[0].partition("\nRaises\n")[0]


def test_doctests_pass():
    runner = doctest.DocTestRunner()
    found = set()
    for module in DEFINING_MODULES:
        for test in doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(module)):
            if test.examples:
                found.add(test.name.rpartition(".")[2])
                runner.run(test)
    assert found >= set(bcast.__all__)  # doctest also passes where it finds nothing
    assert runner.summarize(verbose=False).failed == 0


@pytest.mark.parametrize("options", [(), ("-W", "error"), ("-OO",)], ids=["plain", "warnings", "optimised"])
def test_the_import_needs_only_numpy_and_uses_threadpoolctl(options):
    names = printed("-I", *options, "-c", IMPORT).split()
    imported = {name.partition(".")[0] for name in names}
    assert "bcast" in imported
    of_cython = {name for name in imported if name == "cython_runtime" or name.startswith("_cython_")}  # made in memory
    assert imported - of_cython <= {"bcast", "numpy", "threadpoolctl", *sys.stdlib_module_names}
    assert "numpy.ma" not in names  # which takes longer than bcast itself


def test_type_information_is_installed():
    package = files(bcast)
    assert package.joinpath("py.typed").is_file()
    assert package.joinpath("_kernel.pyi").is_file()
    for name in MODULES:  # a checker reads Python, and for the rest stubs
        path = name.removeprefix("bcast.").replace(".", "/")
        assert package.joinpath(f"{path}.py").is_file() or package.joinpath(f"{path}.pyi").is_file(), name
