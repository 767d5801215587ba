"""The CPUs and the memory that the system allows this process, and its settings in the environment.

Control groups (version 1 or 2) limit containers, services and workers of a cluster; a process may also limit itself.
Every import of bcast calls these functions, so this module imports nothing slow.
"""

import math
import os
import sys
import warnings
from collections.abc import Iterator

CGROUPS = "/sys/fs/cgroup"
MEMBERSHIP = "/proc/self/cgroup"


def setting(name: str, least: int, default: int) -> int:
    """Return the integer that an environment variable asks for, or warn if it asks for something else."""
    text = os.environ.get(name, "").strip()
    try:
        if not text or int(text) >= least:
            return int(text or default)
    except ValueError:
        pass
    wanted = f"`{name}` expected an integer of at least {least}"
    warnings.warn(f"{wanted}, got {text!r}; it is ignored", RuntimeWarning, stacklevel=2)
    return default


def cpus() -> int:
    """Return how many CPUs the process may keep busy, by their number, its affinity and the quotas of its groups."""
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([affinity, *_quotas()]))


def memory() -> int:
    """Return how many bytes the process may have, by the machine's memory, its groups' limits and its own."""
    return min([_physical(), *_group_limits(), *_own_limits()])


def _quotas() -> Iterator[int]:
    for folder in _folders("cpu"):
        quota = read(f"{folder}/cpu.max").split()
        quota = quota or [*read(f"{folder}/cpu.cfs_quota_us").split(), *read(f"{folder}/cpu.cfs_period_us").split()]
        if len(quota) == 2 and all(word.isdecimal() and int(word) for word in quota):  # "max" and -1 mean no quota
            yield math.ceil(int(quota[0]) / int(quota[1]))


def _group_limits() -> Iterator[int]:
    for folder in _folders("memory"):
        for name in ("memory.max", "memory.high", "memory.limit_in_bytes"):
            limit = read(f"{folder}/{name}").split()
            if len(limit) == 1 and limit[0].isdecimal():
                yield int(limit[0])


def _own_limits() -> Iterator[int]:
    if sys.platform == "win32":
        return
    import resource

    for name in ("RLIMIT_AS", "RLIMIT_DATA"):
        limit = resource.getrlimit(getattr(resource, name))[0] if hasattr(resource, name) else resource.RLIM_INFINITY
        if limit != resource.RLIM_INFINITY:
            yield limit


def _physical() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # Windows, or another system without this information
        return sys.maxsize


def _folders(controller: str) -> Iterator[str]:
    """Yield the folders of the process's group and of the groups around it, in versions 1 and 2.

    Within a container, the path of a group may be the one outside, while the container sees its files at the root.
    """
    for line in read(MEMBERSHIP).splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number != "0" and controller not in controllers.split(","):
            continue
        for root in [CGROUPS] if number == "0" else {f"{CGROUPS}/{controllers}", f"{CGROUPS}/{controller}"}:
            group = path.strip("/")
            while group:
                yield f"{root}/{group}"
                group = group.rpartition("/")[0]
            yield root


def read(path: str) -> str:
    """Return what a file says, or nothing if it cannot be read."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 (pathlib takes 5 ms to import)
            return file.read().decode("latin-1")
    except OSError:
        return ""
