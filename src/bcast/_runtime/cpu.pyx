"""The target: the instruction set whose leaves this process uses, detected once for copies and sums alike."""

import os

cdef extern from "_runtime/cpu.h":
    const char **names "bcast_target_names"
    bint has "bcast_has"(int target)


cdef tuple _targets():
    cdef list found = []
    cdef int target
    for target in range(TARGET_COUNT - 1, -1, -1):
        if has(target):
            found.append(names[target].decode())
    return tuple(found)


TARGETS = _targets()    # the best one first


def use_target(name):
    """Choose the target of this process: for tests, which run over all `TARGETS` of the machine.

    Parameters
    ----------
    name : str
        One of `TARGETS`; the first of them is the default.

    Returns
    -------
    str
        The one so far.

    Raises
    ------
    ValueError
        If this machine has no such target.
    """
    global target_number
    cdef int target
    before = names[target_number].decode()
    if name not in TARGETS:
        raise ValueError(f"`BCAST_LEAF` expected one of {', '.join(TARGETS)}, got {name!r}")
    for target in range(TARGET_COUNT):
        if names[target].decode() == name:
            target_number = target
    return before


use_target(os.environ.get("BCAST_LEAF") or TARGETS[0])
