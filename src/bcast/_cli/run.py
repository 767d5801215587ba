"""A program run as ``python`` runs it, but with NumPy patched before it starts."""

import runpy
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path

from bcast._api.patching import PatchInfo, patch_info, patched_numpy

__all__ = ["find", "run"]


def find(target: str, is_module: bool) -> list[str]:
    """Look for a program; return what `sys.path` is while it runs.

    Parameters
    ----------
    target : str
        A module's name, or the file of a script.
    is_module : bool
        Which of the two.

    Raises
    ------
    OSError, ImportError
        If it is not there.
    """
    if not is_module:
        Path(target).stat()
        return [str(Path(target).resolve().parent), *sys.path[1:]]
    path = [str(Path.cwd()), *sys.path[1:]]
    package = target.partition(".")[0]
    if find_spec(package) is None and PathFinder.find_spec(package, path) is None:
        raise ModuleNotFoundError(f"`-m` expected the name of a module, got {target}: there is none")
    return path


def run(
    program: Sequence[str],
    is_module: bool,
    path: list[str],
    patch: patched_numpy,
    tell: Callable[[str], object],
) -> None:
    """Run a program under a patch.

    Parameters
    ----------
    program : sequence of str
        A module's name, or the file of a script; then its arguments.
    is_module : bool
        Which of the two.
    path : list of str
        `sys.path` for the program.
    patch : patched_numpy
        Which of NumPy's functions are replaced.
    tell : callable
        Called when the program has ended, with a line for each of these functions that it has called.

    Raises
    ------
    BaseException
        What the program raises, `SystemExit` included.
    """
    outside = sys.argv, sys.path
    before = patch_info()
    sys.argv, sys.path = list(program), path
    try:
        with patch:
            if is_module:
                runpy.run_module(program[0], run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(program[0], run_name="__main__")
    finally:
        sys.argv, sys.path = outside
        for name, now in patch_info().items():
            then = before.get(name, PatchInfo(0, 0))
            if now != then:
                tell(f"numpy.{name}: calls taken {now.taken - then.taken}, passed on {now.passed - then.passed}")
