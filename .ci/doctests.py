"""Run the examples in the installed package's docstrings and in the pages given, which are files or folders.

Each of them must have examples; so must a folder, though not each of its pages.
"""

import doctest
import importlib
import pkgutil
import sys
from pathlib import Path

import bcast

names = [module.name for module in pkgutil.walk_packages(bcast.__path__, "bcast.") if module.name != "bcast.__main__"]
runs = {"docstrings": [doctest.testmod(importlib.import_module(name)) for name in names]}
for path in map(Path, sys.argv[1:]):
    pages = sorted(path.resolve().rglob("*.md")) if path.is_dir() else [path.resolve()]
    runs[path.name] = [doctest.testfile(str(page), module_relative=False, encoding="utf-8") for page in pages]
bad = False
for name, results in runs.items():
    failed, attempted = (sum(counts) for counts in zip(*results, strict=True))
    print(f"{name}: {attempted} examples, {failed} failed")
    bad |= bool(failed or not attempted)
sys.exit(bad)
