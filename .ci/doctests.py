"""Run the examples in the installed package's docstrings and in the README given; there must be some in both."""

import doctest
import importlib
import sys
from pathlib import Path

MODULES = ["bcast._alignment", "bcast._kernel", "bcast._memory", "bcast._numpy", "bcast._ops"]

modules = [doctest.testmod(importlib.import_module(name)) for name in MODULES]
failed, attempted = (sum(counts) for counts in zip(*modules, strict=True))
print(f"docstrings: {attempted} examples, {failed} failed")
readme = doctest.testfile(str(Path(sys.argv[1]).resolve()), module_relative=False)
print(f"README: {readme.attempted} examples, {readme.failed} failed")
sys.exit(bool(failed or readme.failed or not attempted or not readme.attempted))
