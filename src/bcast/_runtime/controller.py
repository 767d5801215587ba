"""The pool of threads as threadpoolctl sees it: ``threadpool_limits(1)`` limits it as it limits the pools of BLAS.

To import threadpoolctl takes a third as long as bcast, and few programs use it: the pool is registered when they do.
"""

import sys
from contextlib import suppress
from typing import Any

from bcast._runtime.threads import get_pool_limit, set_pool_limit

NAME = "threadpoolctl"


def register_pool() -> None:
    """Have threadpoolctl look for the pool: now if it is imported, or else as soon as it is."""
    if NAME in sys.modules:
        _register()
    else:
        sys.meta_path.insert(0, _Watch())


class _Watch:
    """A finder of modules that leaves them all to the others, and has threadpoolctl loaded by `_Loader`."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        for finder in sys.meta_path if name == NAME else ():
            spec: Any = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None:
                spec.loader = _Loader(spec.loader)
                return spec
        return None


class _Loader:
    """A module's own loader, but for what follows when the module has run."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: Any) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Watch)]
        _register()


def _register() -> None:
    with suppress(ImportError):  # it is too old for pools that it does not know
        from threadpoolctl import LibController, register

        class PoolController(LibController):
            """The pool, as the calling thread may use it; prefixes and symbols find its library."""

            user_api = "bcast"
            internal_api = "bcast"
            filename_prefixes = ("threads.",)
            check_symbols = ("bcast_pool",)

            def get_num_threads(self) -> int:
                return int(get_pool_limit())

            def set_num_threads(self, num_threads: Any) -> None:
                set_pool_limit(num_threads)

            def get_version(self) -> str | None:
                return None  # the pool has no version apart from the package's

        register(PoolController)
