"""Types of arguments, for annotations: `def upsample(image: ArrayLike, factors: bcast.typing.ShapeLike)`.

======================= ==============================================================================================
``ShapeLike``            a 1-D sequence or array of integers: a shape, or axes in order
``AxesLike``             the same, or a set: axes in any order
``CountsLike``           a count, counts for each item, or one of these for each axis, as `bcast.repeat` takes them
``Mode``                 the modes of `bcast.broadcast`
``ElementwiseMode``      the modes of `bcast.elementwise`
``Casting``              the rules of `numpy.can_cast`
``Indexing``             the orders of axes of `bcast.meshgrid`
======================= ==============================================================================================
"""

from bcast._rules.types import AxesLike, Casting, CountsLike, ElementwiseMode, Indexing, Mode, ShapeLike

__all__ = ["AxesLike", "Casting", "CountsLike", "ElementwiseMode", "Indexing", "Mode", "ShapeLike"]
