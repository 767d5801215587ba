from collections.abc import Sequence

def small_nest(
    shape: Sequence[int], strides: Sequence[Sequence[int]], steps: Sequence[str], by: int = 0
) -> tuple[tuple[int, ...], list[tuple[int, ...]], list[int]]: ...
