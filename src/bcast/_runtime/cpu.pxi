# The target: the instruction set whose kernels this process uses. It is detected once, for copies and sums alike.

cdef tuple _targets():
    cdef list found = []
    cdef int target
    for target in range(TARGET_COUNT - 1, -1, -1):
        if has_target(target):
            found.append(target_names[target].decode())
    return tuple(found)


TARGETS = _targets()    # best first


def use_target(name):
    """Choose the target of this process, one of `TARGETS`, and return the previous one: for tests, which try all."""
    global target_number
    cdef int target
    before = target_names[target_number].decode()
    if name not in TARGETS:
        raise ValueError(f"`BCAST_TARGET` expected one of {', '.join(TARGETS)}, got {name!r}")
    for target in range(TARGET_COUNT):
        if target_names[target].decode() == name:
            target_number = target
    return before


use_target(os.environ.get("BCAST_TARGET") or TARGETS[0])
