"""Tensors of other libraries, whose memory is read and written in place if it is that of the CPU."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["array_of", "view_of"]

CPU, PINNED = 1, 3  # kinds of DLPack's devices whose memory the CPU reads as its own


def array_of(name: str, tensor: Any) -> NDArray[Any]:
    """Return an array with the items of a tensor.

    Parameters
    ----------
    name : str
        The user's name for it, for messages.
    tensor : object
        An object that speaks DLPack.

    Returns
    -------
    ndarray
        An array over the tensor's memory if the tensor's own conversion makes one.

    Raises
    ------
    TypeError
        If it is on another device, which would take a copy that nobody has asked for; or if NumPy cannot read it.
    """
    try:
        _check_device(tensor)
        return np.asarray(tensor)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        text = f"`{name}` expected an array that NumPy can read, got {type(tensor).__name__}: {error}"
        if "bfloat16" in str(error).lower():
            text += "; convert it by .float(), or give its bits as an array of ml_dtypes.bfloat16"
        raise TypeError(text) from error


def view_of(out: Any) -> NDArray[Any]:
    """Return an array over the memory of a tensor that is to be written to.

    Parameters
    ----------
    out : object
        The user's `out`, which speaks DLPack.

    Returns
    -------
    ndarray
        The array.

    Raises
    ------
    TypeError
        If the CPU cannot write to the tensor's memory, or NumPy lacks its dtype.
    """
    try:
        _check_device(out)
        return np.from_dlpack(out)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        kind = type(out).__name__
        raise TypeError(f"`out` expected an array in the CPU's memory, got {kind}: {error}") from error


def _check_device(tensor: Any) -> None:
    kind, number = tensor.__dlpack_device__()
    if kind not in (CPU, PINNED):
        device = getattr(tensor, "device", f"{int(kind)}:{number}")
        raise TypeError(f"it is on device {device}; copy it to the CPU's memory first")
