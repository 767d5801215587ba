"""The names of ``numpy.linalg``, with bcast's `norm`."""

from numpy import linalg as _numpys

from bcast._api.namespace import forward as _forward
from bcast._api.namespace import functions_of as _functions_of

globals().update({name: value for name, value in vars(_numpys).items() if not name.startswith("__")})
globals().update(_functions_of(_numpys, "linalg"))

__all__ = [*_numpys.__all__]
__getattr__ = _forward(_numpys, __name__)


def __dir__() -> list[str]:
    return dir(_numpys)
