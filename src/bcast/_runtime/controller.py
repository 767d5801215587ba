"""The pool of threads as threadpoolctl sees it: ``threadpool_limits(1)`` limits it as it limits the pools of BLAS.

This module can be imported only if threadpoolctl is installed.
"""

from typing import Any

from threadpoolctl import LibController, register

from bcast._runtime.core import get_pool_limit, set_pool_limit


class PoolController(LibController):
    """The pool, as the calling thread may use it; `filename_prefixes` and `check_symbols` find its library."""

    user_api = "bcast"
    internal_api = "bcast"
    filename_prefixes = ("core.",)
    check_symbols = ("bcast_pool",)

    def get_num_threads(self) -> int:
        """Return how many threads the pool has for the calling thread."""
        return int(get_pool_limit())

    def set_num_threads(self, num_threads: Any) -> None:
        """Set that number."""
        set_pool_limit(num_threads)

    def get_version(self) -> str | None:
        """Return None: the pool has no version apart from the package's."""
        return None


def register_pool() -> None:
    """Have threadpoolctl search for the pool."""
    register(PoolController)
