from collections.abc import Callable, Iterable
from contextlib import ContextDecorator
from typing import Any, NamedTuple, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])

DEFAULT_NAMES: tuple[str, ...]
OTHER_NAMES: tuple[str, ...]
FUNCTION_NAMES: tuple[str, ...]
GROUPS: dict[str, tuple[str, ...]]

class PatchInfo(NamedTuple):
    taken: int
    passed: int
    items: int
    seconds_taken: float
    seconds_passed: float

def patch_numpy(names: str | Iterable[str] = ..., *more: str) -> None: ...
def unpatch_numpy() -> None: ...

class StandIn:
    original: Any
    active: bool

def stand_in_for(original: Any, name: str) -> StandIn: ...

class patched_numpy(ContextDecorator):  # noqa: N801
    def __init__(self, names: str | Iterable[str] = ..., *more: str) -> None: ...
    def __call__(self, func: _F) -> _F: ...
    def __enter__(self) -> None: ...
    def __exit__(self, kind: object, error: object, traceback: object) -> None: ...

def is_patched(name: str | None = None) -> bool: ...
def patch_info() -> dict[str, PatchInfo]: ...
def time_calls(wanted: bool = ...) -> None: ...
def reasons_of_passed() -> dict[str, dict[str, int]]: ...
