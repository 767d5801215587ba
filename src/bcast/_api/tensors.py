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
        An array over the tensor's memory if the tensor's own conversion makes one, or if it has none.

    Raises
    ------
    TypeError
        If it is on another device, which would take a copy that nobody has asked for; or if NumPy cannot read it.
    """
    try:
        _check_device(tensor)
        return np.asarray(tensor) if hasattr(tensor, "__array__") else np.from_dlpack(tensor)
    except (AttributeError, TypeError, ValueError, RuntimeError, BufferError) as error:
        raise TypeError(_refusal(f"`{name}` expected an array that NumPy can read", tensor, error)) from error


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
    ValueError
        If items share memory, as in an expanded tensor.
    """
    try:
        _check_device(out)
        if getattr(out, "is_neg", bool)():  # PyTorch exports the items as they are without it
            raise TypeError("its items are negated when they are read; call .resolve_neg() first")
        view = np.from_dlpack(out)
    except (AttributeError, TypeError, ValueError, RuntimeError, BufferError) as error:
        raise TypeError(_refusal("`out` expected an array that NumPy can write to", out, error)) from error
    if view.size and any(length > 1 and step == 0 for length, step in zip(view.shape, view.strides, strict=True)):
        raise ValueError(f"`out` expected items with memory of their own, got {type(out).__name__} that is expanded")
    return view


def _refusal(expected: str, tensor: Any, error: Exception) -> str:
    text = f"{expected}, got {type(tensor).__name__}: {error}"
    if "float" in str(getattr(tensor, "dtype", "")) and "nsupported" in str(error):
        text += "; NumPy has no such dtype: convert it by .float(), or give its bits as a dtype of ml_dtypes"
    return text


def _check_device(tensor: Any) -> None:
    kind, number = tensor.__dlpack_device__()
    if kind not in (CPU, PINNED):
        device = getattr(tensor, "device", f"{int(kind)}:{number}")
        raise TypeError(f"it is on device {device}; copy it to the CPU's memory first")
