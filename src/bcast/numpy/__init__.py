"""NumPy's names, with bcast's functions where they are faster: ``import bcast.numpy as np``.

The import affects only the module that makes it: NumPy itself and all other modules stay as they are. ``np.ndarray``,
dtypes, ``np.random`` and everything else that bcast does not speed up are NumPy's own objects.

These are bcast's functions: ``tile``, ``repeat``, ``meshgrid``, ``where``, ``stack``, ``dstack``, ``sum``, ``mean``,
``var``, ``std``, ``max``, ``min``, ``any``, ``all``, ``argmax``, ``argmin``, ``prod``, ``nansum``, ``nanmean``,
``nanvar``, ``nanstd``, ``nanmax``, ``nanmin``, ``vecdot``, ``matvec``, ``cross``, ``linalg.norm``, and 64 ufuncs such
as ``add``, ``maximum`` and ``sqrt``. They have NumPy's signatures. Calls that they do not speed up go to NumPy: lists,
subclasses, object arrays, rare keywords. Results match NumPy's bit for bit, with one exception: sums, means,
deviations, norms and products of vectors may differ in their last bits, because bcast's are more accurate.

Operators and methods remain NumPy's: ``x + c`` and ``x.sum()`` run NumPy's code. Write ``np.add(x, c)`` and
``np.sum(x)``, or use `bcast.patch_numpy`.

A ufunc here is a function with ``reduce``, ``outer``, ``at``, ``nin`` and all other attributes of NumPy's ufunc, but it
is not an instance of ``np.ufunc``. If a library requires one, pass ``np.add.ufunc``.

Examples
--------
>>> import bcast.numpy as np
>>> points = np.arange(6.0).reshape(2, 3)
>>> np.subtract(points, np.mean(points, axis=0))
array([[-1.5, -1.5, -1.5],
       [ 1.5,  1.5,  1.5]])
>>> np.linalg.norm(points, axis=1)
array([2.23606798, 7.07106781])
"""

import numpy as _numpy

from bcast._api.namespace import forward as _forward
from bcast._api.namespace import functions_of as _functions_of
from bcast._api.namespace import ufuncs_of as _ufuncs_of

# What NumPy has at once; the rest, such as `testing`, is found by `__getattr__` when somebody asks for it.
globals().update({name: value for name, value in vars(_numpy).items() if not name.startswith("__")})
globals().update(_ufuncs_of(_numpy))
globals().update(_functions_of(_numpy))

from bcast.numpy.linalg import norm as _  # noqa: E402, F401 (puts our `linalg` in the place of NumPy's)

__all__ = [*_numpy.__all__]
__version__ = _numpy.__version__
__getattr__ = _forward(_numpy, __name__)


def __dir__() -> list[str]:
    return dir(_numpy)
