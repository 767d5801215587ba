"""A program run as ``python`` runs it, but with NumPy patched before it starts."""

import atexit
import builtins
import io
import runpy
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from pkgutil import get_importer
from types import ModuleType, TracebackType

from bcast._api.patching import patch_info, patched_numpy

__all__ = ["find", "run"]


def find(target: str, is_module: bool) -> list[str]:
    """Look for a program; return what `sys.path` is while it runs.

    Parameters
    ----------
    target : str
        A module's name, or the file of a script, or a folder or archive with a `__main__`.
    is_module : bool
        Which of the two.

    Raises
    ------
    OSError, ImportError
        If it is not there.
    """
    path = sys.path[0 if sys.flags.safe_path else 1 :]
    own = Path.cwd()
    if not is_module:
        Path(target).stat()
        own = Path(target).resolve().parent
    if not sys.flags.safe_path and (is_module or _is_script(target)):
        path.insert(0, str(own))
    package = target.partition(".")[0]
    if is_module and find_spec(package) is None and PathFinder.find_spec(package, path) is None:
        raise ModuleNotFoundError(f"`-m` expected the name of a module, got {target}: there is none")
    return path


def run(
    program: Sequence[str],
    is_module: bool,
    path: list[str],
    patch: patched_numpy,
    tell: Callable[[str], object] | None,
) -> None:
    """Run a program under a patch, which stays until the process ends, as do `sys.argv` and `sys.path`.

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
    tell : callable or None
        Called when the process ends, with a line for each of these functions that it has called.

    Raises
    ------
    SystemExit
        What the program raises; status 1 after the traceback of another exception.
    KeyboardInterrupt
        On an interrupt.
    """
    sys.argv, sys.path = list(program), path
    if tell is not None:
        atexit.register(_tell, tell)  # first, so that it is called last
    patch.__enter__()
    try:
        if is_module:
            runpy.run_module(program[0], run_name="__main__", alter_sys=True)
        elif _is_script(program[0]):
            _run_script(str(Path(program[0]).absolute()))
        else:
            runpy.run_path(str(Path(program[0]).absolute()), run_name="__main__")
    except Exception as error:
        error.__traceback__ = _own(error.__traceback__)
        sys.excepthook(type(error), error, error.__traceback__)
        raise SystemExit(1) from None


def _run_script(name: str) -> None:
    """Run a script as the module `__main__`, which stays: threads and functions called at exit may need it."""
    with io.open_code(name) as file:
        code = compile(file.read(), name, "exec", dont_inherit=True)
    module = ModuleType("__main__")
    module.__dict__.update(__file__=name, __builtins__=builtins, __cached__=None)
    sys.modules["__main__"] = module
    exec(code, module.__dict__)


def _is_script(name: str) -> bool:
    """Return whether a file is neither a folder nor an archive, which are run as packages are."""
    return get_importer(name) is None


def _own(traceback: TracebackType | None) -> TracebackType | None:
    """Leave out the frames before the program's own, unless there are no others."""
    ours = (__file__, runpy.__file__, "<frozen runpy>")
    at = traceback
    while at is not None and at.tb_frame.f_code.co_filename in ours:
        at = at.tb_next
    return at


def _tell(tell: Callable[[str], object]) -> None:
    for name, (taken, passed) in patch_info().items():
        if taken or passed:
            tell(f"numpy.{name}: calls taken {taken}, passed on {passed}")
