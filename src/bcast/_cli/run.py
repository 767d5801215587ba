"""Programs run under a patch. In: a script or module. Out: its run as by ``python``, with NumPy's functions patched."""

import atexit
import builtins
import io
import runpy
import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from pkgutil import get_importer
from types import ModuleType
from typing import Any

from bcast._api.patching import DEFAULT_NAMES, is_patched, patch_info, patched_numpy, reasons_of_passed, time_calls
from bcast._cli.streams import warn


def find(target: str, is_module: bool) -> list[str]:
    """Find a script, folder, archive or module; return the `sys.path` for its run."""
    path = sys.path[0 if sys.flags.safe_path else 1 :]
    own = Path.cwd()
    if not is_module:
        Path(target).stat()
        own = Path(target).resolve().parent
    if not sys.flags.safe_path and (is_module or get_importer(target) is None):
        path.insert(0, str(own))
    package = target.partition(".")[0]
    if is_module and find_spec(package) is None and PathFinder.find_spec(package, path) is None:
        raise ModuleNotFoundError(f"`-m` expected the name of a module, got {target}: there is none")
    return path


def run(program: Sequence[str], is_module: bool, path: list[str], patch: patched_numpy, counts: bool) -> None:
    """Run a program, with its arguments, under a patch that stays until the process ends, as does `sys.path`."""
    sys.argv, sys.path = list(program), path
    if counts:
        atexit.register(_print_counts)  # first, so that it is called last
        time_calls()
    patch.__enter__()
    if is_module:
        runpy.run_module(program[0], run_name="__main__", alter_sys=True)
    elif get_importer(program[0]) is None:
        _run_script(str(Path(program[0]).absolute()))
    else:  # a folder or an archive
        runpy.run_path(str(Path(program[0]).absolute()), run_name="__main__")


def _run_script(name: str) -> None:
    """Run a script as the module `__main__`, which stays: threads and functions called at exit may need it."""
    with io.open_code(name) as file:
        code = compile(file.read(), name, "exec", dont_inherit=True)
    module = ModuleType("__main__")
    module.__dict__.update(__file__=name, __builtins__=builtins, __cached__=None)
    sys.modules["__main__"] = module
    exec(code, module.__dict__)


def _line_of_counts(name: str, info: Any, reasons: dict[str, int]) -> str:
    done = f" ({info.items} items, {1e3 * info.seconds_taken:.2f} ms)" if info.taken else ""
    why = ", ".join(f"{reason} {calls}" for reason, calls in reasons.items())
    left = f" ({1e3 * info.seconds_passed:.2f} ms: {why})" if info.passed else ""
    return f"numpy.{name}: calls taken {info.taken}{done}, passed on {info.passed}{left}"


def _print_counts() -> None:
    counts = {name: info for name, info in patch_info().items() if info.taken or info.passed}
    reasons = reasons_of_passed()
    for name, info in counts.items():
        warn(_line_of_counts(name, info, reasons[name]))
    if not counts:
        patched = [*patch_info()]
        some = ", ".join(patched[:12]) + (" and others" if len(patched) > 12 else "")
        warn(f"none of {some} was called; --names chooses others")
    elif is_patched("ufuncs") and not is_patched("sums"):
        names = ",".join((*DEFAULT_NAMES, "sums"))
        warn(f"sums, means and deviations went to NumPy, as their last bits differ; --names {names} takes them, too")
