# The target: the instruction set whose kernels this process uses. It is detected once, for copies and sums alike.

cdef int number
cdef dict target_numbers = {}   # of those that this machine has, by their names
for number in range(TARGET_COUNT - 1, -1, -1):
    if has_target(number):
        target_numbers[target_names[number].decode()] = number
TARGETS = tuple(target_numbers)   # best first


def use_target(name):
    """Choose the target of this process, one of `TARGETS`, and return the previous one: for tests, which try all."""
    global target_number
    before = target_names[target_number].decode()
    if name not in TARGETS:
        raise ValueError(f"`BCAST_TARGET` expected one of {', '.join(TARGETS)}, got {name!r}")
    target_number = target_numbers[name]
    return before


use_target(os.environ.get("BCAST_TARGET") or TARGETS[0])
