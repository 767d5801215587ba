"""Run the examples in the installed package's docstrings and in the README given; there must be some in both."""

import doctest
import importlib
import pkgutil
import sys
from pathlib import Path

import bcast

names = [module.name for module in pkgutil.walk_packages(bcast.__path__, "bcast.") if module.name != "bcast.__main__"]
results = [doctest.testmod(importlib.import_module(name)) for name in names]
failed, attempted = (sum(counts) for counts in zip(*results, strict=True))
print(f"docstrings: {attempted} examples, {failed} failed")
readme = doctest.testfile(str(Path(sys.argv[1]).resolve()), module_relative=False)
print(f"README: {readme.attempted} examples, {readme.failed} failed")
sys.exit(bool(failed or readme.failed or not attempted or not readme.attempted))
