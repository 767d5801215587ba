"""How many CPUs and how much memory the system lets this process use: the smallest of all limits that it reports.

Control groups (version 1 or 2) limit containers, services and workers of a cluster; a process may also limit itself.
"""

import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path

__all__ = ["cpus", "memory"]

CGROUPS = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")


def cpus() -> int:
    """Return how many CPUs the process may keep busy, by their number, its affinity and the quotas of its groups."""
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([affinity, *_quotas()]))


def memory() -> int:
    """Return how many bytes the process may have, by the machine's memory, its groups' limits and its own."""
    return min([_physical(), *_group_limits(), *_own_limits()])


def _quotas() -> Iterator[int]:
    for folder in _folders("cpu"):
        quota = _read(folder / "cpu.max") or [*_read(folder / "cpu.cfs_quota_us"), *_read(folder / "cpu.cfs_period_us")]
        if len(quota) == 2 and all(word.isdecimal() and int(word) for word in quota):  # "max" and -1 mean no quota
            yield math.ceil(int(quota[0]) / int(quota[1]))


def _group_limits() -> Iterator[int]:
    for folder in _folders("memory"):
        for name in ("memory.max", "memory.high", "memory.limit_in_bytes"):
            limit = _read(folder / name)
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
    except (AttributeError, OSError, ValueError):  # Windows, or another system that does not tell
        return sys.maxsize


def _folders(controller: str) -> Iterator[Path]:
    """Yield the folders of the process's group and of the groups around it, in versions 1 and 2.

    Within a container, the path of a group may be the one outside, while the container sees its files at the root.
    """
    for line in _lines(MEMBERSHIP):
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number != "0" and controller not in controllers.split(","):
            continue
        group = Path(path.lstrip("/"))
        for root in [CGROUPS] if number == "0" else {CGROUPS / controllers, CGROUPS / controller}:
            for part in (group, *group.parents):
                yield root / part


def _read(file: Path) -> list[str]:
    return " ".join(_lines(file)).split()


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return []
