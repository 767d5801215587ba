"""The pool of threads made known to threadpoolctl: ``threadpool_limits(1)`` then limits it as it does those of BLAS.

It can be imported only where threadpoolctl is.
"""

from typing import Any

from threadpoolctl import LibController, register

from bcast._runtime.threads import get_pool_limit, set_pool_limit


class PoolController(LibController):
    """The pool of the calling thread; `filename_prefixes` and `check_symbols` find its library."""

    user_api = "bcast"
    internal_api = "bcast"
    filename_prefixes = ("threads.",)
    check_symbols = ("bcast_pool",)

    def get_num_threads(self) -> int:
        """Return how many threads the pool has for the calling thread."""
        return int(get_pool_limit())

    def set_num_threads(self, num_threads: Any) -> None:
        """Set that number."""
        set_pool_limit(num_threads)

    def get_version(self) -> str | None:
        """Return None: the version is that of the package."""
        return None


def register_pool() -> None:
    """Have threadpoolctl look for the pool."""
    register(PoolController)
