"""Calls during which floating-point errors are ignored.

In: a function and its arguments. Out: its result. The caller's error state is never touched.
"""

from collections.abc import Callable
from contextvars import Context
from typing import Any, TypeVar

import numpy as np

Result = TypeVar("Result")

QUIET = Context()
QUIET.run(np.seterr, all="ignore")


def quietly(function: Callable[..., Result], *arguments: Any) -> Result:
    """Call a function with all floating-point errors ignored.

    It runs in a context of its own, so that nothing has to be set back: `numpy.errstate` fails to do so where memory
    is short or an interrupt comes.
    """
    return QUIET.copy().run(function, *arguments)
