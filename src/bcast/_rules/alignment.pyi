from collections.abc import Sequence
from typing import Any, NamedTuple

from bcast._rules.arguments import Shape

class Alignment:
    shape: Shape
    source: Shape
    def __init__(self, shape: Shape, source: Shape) -> None: ...

def right_aligned(data: Shape, target: Shape, name: str) -> Alignment: ...
def pdpd(data: Shape, target: Shape, axis: int, name: str) -> Alignment: ...
def aligned(shape: Shape, source: Shape) -> Alignment: ...
def merge(shapes: Sequence[Shape], name: str) -> Shape: ...
def expect_default_axis(axis: Any, mode: str) -> None: ...

class Form(NamedTuple):
    rule: str
    data: Shape
    target: Shape
    arguments: dict[str, Any]

class Mode:
    name: str
    forms: tuple[Form, ...]

MODES: tuple[Mode, ...]

class Role:
    def __init__(self, name: str, all_if_empty: bool, two_way: bool) -> None: ...

SHAPE: Role
LIKE: Role
GRAD: Role
GRAD_OF_SCALAR: Role

def align(
    data: Shape,
    target_shape: Any,
    axes_mapping: Any = ...,
    mode: Any = ...,
    axis: Any = ...,
    broadcast_axes: Any = ...,
) -> Alignment: ...
def align_shapes(
    data: Shape, target: Shape, axes_mapping: Any, mode: Any, axis: Any, broadcast_axes: Any, role: Role
) -> Alignment: ...
def rule_of(axis: Any) -> str: ...
