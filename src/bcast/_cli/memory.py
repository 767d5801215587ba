"""How much memory a run takes at most: what the process has taken so far, what its blocks take, and some slack."""

import sys
from pathlib import Path

if sys.platform != "win32":
    import resource

__all__ = ["SLACK", "check_bound", "peak"]

SLACK = (
    16 * 2**20
)  # bytes that no plan counts: what the heap keeps, stacks of threads, code that runs for the first time
STATUS = Path("/proc/self/status")


def peak() -> int:
    """Return the most memory that this process has had so far, in bytes.

    Raises
    ------
    ValueError
        If the system does not tell.
    """
    try:
        for line in STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:  # not Linux
        pass
    if sys.platform == "win32":
        raise ValueError("`max_memory` expected None on a system that does not tell how much memory a process has had")
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def check_bound(held: int, room: int, most: int) -> str:
    """Return the line that promises a bound, or refuse.

    Parameters
    ----------
    held, room : int
        The most memory that the process has had so far, and what the run takes beyond that, slack included, in bytes.
    most : int
        The memory that the run may take in all.

    Returns
    -------
    str
        What to tell.

    Raises
    ------
    ValueError
        If the bound exceeds `most`.
    """
    if held + room > most:
        raise ValueError(
            f"`max_memory` expected at least {_mb(held + room)}, of which {_mb(held)} are in use, got {_mb(most)}"
        )
    return f"at most {_mb(held + room)} of memory, of which {_mb(held)} are in use"


def _mb(size: int) -> str:
    return f"{-(-size // 10**6)} MB"
