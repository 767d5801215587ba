"""Functions of NumPy's replaced by ours in NumPy's namespace, for programs that call them there.

The GIL is the lock, or where there is none a critical section. While it is held, no code in Python runs and no signal
is handled: this module is compiled. A lock would have to be released, which takes memory.
"""

from collections.abc import Iterable
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

import cython
import numpy as np

from bcast._rules.arguments import show

if TYPE_CHECKING:
    from bcast._api.numpy_calls import StandIn

__all__ = ["PatchInfo", "is_patched", "patch_info", "patch_numpy", "patched_numpy", "unpatch_numpy"]


class PatchInfo(NamedTuple):
    """How many calls of a function of NumPy's have been taken and passed on while it was patched."""

    taken: int
    passed: int


def patch_numpy(names: str | Iterable[str] = ("tile", "repeat", "meshgrid")) -> None:
    """Put functions of bcast in the place of NumPy's, for the whole process.

    ``np.tile``, ``np.repeat`` and ``np.meshgrid`` then run at the speed of memory where that changes nothing else: for
    arrays of the base class whose dtype is a number, a bool, a date, a duration or a string of fixed length. Lists,
    subclasses, masked arrays, objects, structures, arrays of other libraries, rare arguments and all errors are left to
    NumPy's functions.

    Parameters
    ----------
    names : str or iterable of str, optional
        The functions to replace, among 'tile', 'repeat', 'meshgrid', 'broadcast_arrays' and 'where'. The last two have
        to be named. The results of ``np.broadcast_arrays`` are then new arrays, as those of `bcast.broadcast_arrays`,
        where NumPy's are views.

    Returns
    -------
    None

    Raises
    ------
    ValueError
        If one of the names is none of these.
    TypeError
        If `names` is not iterable.

    See Also
    --------
    unpatch_numpy : Take back the last patch.
    patched_numpy : Patch for a ``with`` block.
    patch_info : Count the calls.

    Notes
    -----
    The functions are replaced in NumPy's namespace. A module that has imported them by ``from numpy import tile``
    before the patch keeps what it has. ``python -m bcast run`` patches before a program starts.

    Patches nest. Each is to be taken back once, from any thread. What other libraries have put there before is called
    for what is passed on; what they put there since stays.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> bcast.patch_numpy()
    >>> np.tile(np.array([0, 1]), 2)
    array([0, 1, 0, 1])
    >>> bcast.is_patched()
    True
    >>> bcast.unpatch_numpy()
    >>> bcast.is_patched()
    False
    """
    chosen = _names_argument(names)
    global _patches
    with cython.critical_section(_places):
        patches = (chosen, _patches)  # before anything is replaced, as it takes memory
        _replace(chosen)
        _patches = patches


def unpatch_numpy() -> None:
    """Take back the last patch that `patch_numpy` made.

    Returns
    -------
    None

    Raises
    ------
    RuntimeError
        If all of them have been taken back.

    See Also
    --------
    patch_numpy : Put functions of bcast in the place of NumPy's.

    Examples
    --------
    >>> import bcast
    >>> bcast.patch_numpy("repeat")
    >>> bcast.unpatch_numpy()
    """
    global _patches
    with cython.critical_section(_places):
        if _patches is None:
            raise RuntimeError("`unpatch_numpy` expected a patch made by patch_numpy, got none")
        names, rest = _patches
        _put_back(names)
        _patches = rest


class patched_numpy:  # noqa: N801 (it is used as a function)
    """Put functions of bcast in the place of NumPy's for a ``with`` block.

    Parameters
    ----------
    names : str or iterable of str, optional
        As in `patch_numpy`.

    Raises
    ------
    ValueError, TypeError
        As `patch_numpy` raises them.

    See Also
    --------
    patch_numpy : Patch until further notice. Other threads see either patch, too.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> with bcast.patched_numpy():
    ...     x = np.repeat(np.array([1, 2]), 2)
    >>> x
    array([1, 1, 2, 2])
    """

    def __init__(self, names: str | Iterable[str] = ("tile", "repeat", "meshgrid")) -> None:
        self._names = _names_argument(names)

    def __enter__(self) -> None:
        names = self._names
        with cython.critical_section(_places):
            _replace(names)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        names = self._names
        with cython.critical_section(_places):
            _put_back(names)


def is_patched(name: str | None = None) -> bool:
    """Return whether a function of bcast stands in the place of one of NumPy's.

    Parameters
    ----------
    name : str, optional
        One of the names that `patch_numpy` takes. By default, any of them.

    Returns
    -------
    bool
        Whether it does now. After a patch, it does not if another library has replaced the function since.

    Raises
    ------
    ValueError
        If `name` is none of these names.

    Examples
    --------
    >>> import bcast
    >>> with bcast.patched_numpy("tile"):
    ...     bcast.is_patched(), bcast.is_patched("tile"), bcast.is_patched("repeat")
    (True, True, False)
    """
    for each in _places if name is None else _names_argument(name):
        stand_in = _place(each).stand_in
        if stand_in is not None and stand_in.active and getattr(np, each, None) is stand_in:
            return True
    return False


def patch_info() -> dict[str, PatchInfo]:
    """Return how many calls of each function have been taken and passed on, by all patches so far.

    Returns
    -------
    dict of str to PatchInfo
        For each function that has been patched: `taken`, the calls that bcast has done, and `passed`, those that it
        left to NumPy. In an interpreter without a GIL, some of many calls at the same time may not be counted.

    See Also
    --------
    patch_numpy : Put functions of bcast in the place of NumPy's.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> before = bcast.patch_info().get("repeat", (0, 0))
    >>> with bcast.patched_numpy("repeat"):
    ...     _ = np.repeat(np.array([1, 2]), 2)
    ...     _ = np.repeat([1, 2], 2)  # a list
    >>> after = bcast.patch_info()["repeat"]
    >>> after.taken - before[0], after.passed - before[1]
    (1, 1)
    """
    found: dict[str, PatchInfo] = {}
    for name in _places:
        place = _place(name)
        if place.stand_in is not None:
            taken = place.taken + place.stand_in.taken
            found[name] = PatchInfo(taken, place.passed + place.stand_in.passed)
    return found


@cython.final
@cython.auto_pickle(False)
@cython.cclass  # its attributes are declared in _api/patching.pxd: to change one allocates nothing
class Place:
    """A function's place in NumPy's namespace.

    Attributes
    ----------
    uses : int
        How many patches there are.
    stand_in : StandIn or None
        What the last one of them put there.
    taken, passed : int
        How many calls those before it have taken and passed on.
    """

    def __init__(self) -> None:
        self.uses = 0
        self.stand_in: StandIn | None = None
        self.taken = 0
        self.passed = 0


def _replace(names: tuple[str, ...]) -> None:
    """Put stand-ins in place. All that may fail comes first; from then on, no other thread comes in between."""
    stand_ins: list[StandIn | None] = []
    for name in names:
        original = getattr(np, name)
        while type(original) is _made[name].func and not original.active:  # somebody had kept it, and put it back
            original = original.original
        stand_ins.append(_made[name](original))
    for i in range(len(names)):
        place = _place(names[i])
        if place.uses == 0:
            if place.stand_in is not None:
                place.taken += place.stand_in.taken
                place.passed += place.stand_in.passed
            stand_ins[i], place.stand_in = place.stand_in, stand_ins[i]  # the old one is freed at the end
            setattr(np, names[i], place.stand_in)
        place.uses += 1


def _put_back(names: tuple[str, ...]) -> None:
    """Take one patch back. Where something else has been put in the stand-in's place, that stays."""
    for name in names:
        place = _place(name)
        if place.uses == 0:
            raise RuntimeError("`patched_numpy` expected to be left once for each time that it is entered, got more")
        place.uses -= 1
        stand_in = place.stand_in
        if place.uses == 0 and stand_in is not None:
            stand_in.active = False  # somebody may still have it
            if getattr(np, name) is stand_in:
                setattr(np, name, stand_in.original)


def _place(name: str) -> Place:
    place: Place = _places[name]
    return place


def _names_argument(names: str | Iterable[str]) -> tuple[str, ...]:
    """Check the names of functions, and have at hand what stands in for them."""
    given: Any = names
    if isinstance(given, bytes) or not isinstance(given, Iterable):
        raise TypeError(f"`names` expected names among {', '.join(_places)}, got {show(given)}")
    chosen: list[str] = []
    for name in (given,) if isinstance(given, str) else given:
        if not isinstance(name, str) or name not in _places:
            raise ValueError(f"`names` expected names among {', '.join(_places)}, got {show(name)}")
        if name not in chosen:
            chosen.append(name)
        if name not in _made:
            from bcast._api import numpy_calls  # few programs patch: they are imported for those that do

            _made[name] = partial(numpy_calls.StandIn, take=getattr(numpy_calls, f"take_{name}"))
    return tuple(chosen)


_places = {name: Place() for name in ("tile", "repeat", "meshgrid", "broadcast_arrays", "where")}
_made: dict[str, partial[StandIn]] = {}  # makes what stands in for a function, by its name
_patches: Any = None  # of patch_numpy: the names of the last one, and those before it
