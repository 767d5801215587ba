from collections.abc import Callable, Iterable
from contextlib import ContextDecorator
from typing import Any, NamedTuple, Self, TypeVar

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

class Place:
    def __new__(
        cls, take: Any, least: int = 0, of_several: bool = False, reading: Any = None, refusal: Any = None
    ) -> Self: ...

class StandIn:
    original: Any
    active: bool
    def __new__(cls, original: Any, place: Place) -> Self: ...

def read_for_tile(A: Any, reps: Any) -> Any: ...  # noqa: N803
def refusal_of_repeat(a: Any, repeats: Any, axis: Any = None) -> Any: ...
def refusal_of_tile(A: Any, reps: Any) -> Any: ...  # noqa: N803

class patched_numpy(ContextDecorator):  # noqa: N801
    def __init__(self, names: str | Iterable[str] = ..., *more: str) -> None: ...
    def __call__(self, func: _F) -> _F: ...
    def __enter__(self) -> None: ...
    def __exit__(self, kind: object, error: object, traceback: object) -> None: ...

def is_patched(name: str | None = None) -> bool: ...
def patch_info() -> dict[str, PatchInfo]: ...
def time_calls(wanted: bool = ...) -> None: ...
def reasons_of_passed() -> dict[str, dict[str, int]]: ...
