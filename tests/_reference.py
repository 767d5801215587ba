"""A second implementation of the rules of all modes, simple rather than fast: the oracle of the exhaustive tests."""

from itertools import zip_longest

import numpy as np


class MisfitError(Exception):
    pass


def reference(data, target, *, mode="numpy", axes_mapping=None, axis=-1, broadcast_axes=None):
    """Return the output's shape and the data's shape stretched to its rank; None if the rule rejects the shapes."""
    try:
        shape = two_way(data, target) if mode == "bidirectional" else target
        if mode == "explicit" and broadcast_axes is not None:
            return shape, without(data, shape, set(broadcast_axes))
        arguments = {"explicit": (axes_mapping,), "pdpd": (axis,)}.get(mode, ())
        return shape, RULES[mode](data, shape, *arguments)
    except MisfitError:
        return None


def require(condition):
    if not condition:
        raise MisfitError


def fitting(length, target_length):
    require(length in (1, target_length))
    return length


def right_aligned(data, target):
    source = []
    for length, target_length in zip_longest(reversed(data), reversed(target)):
        require(target_length is not None)
        source.append(1 if length is None else fitting(length, target_length))
    return tuple(reversed(source))


def two_way(a, b):
    shape = []
    for lengths in zip_longest(reversed(a), reversed(b), fillvalue=1):
        longer = set(lengths) - {1}
        require(len(longer) <= 1)
        shape.append(longer.pop() if longer else 1)
    return tuple(reversed(shape))


def laid_on(data, target, axis):
    require(len(data) <= len(target))
    require(axis >= -1)
    require(axis < len(target) or (axis == len(target) and data == ()))
    before = (1,) * (len(target) - len(data) if axis == -1 else axis)
    while data[-1:] == (1,):
        data = data[:-1]
    after = (1,) * (len(target) - len(before) - len(data))
    return right_aligned(before + data + after, target)  # rejects one that is too long


def identical(data, target):
    require(data == target)
    return data


def without(data, target, added):
    require(added <= set(range(len(target))))
    require([target[axis] for axis in range(len(target)) if axis not in added] == list(data))
    return tuple(1 if axis in added else target[axis] for axis in range(len(target)))


def mapped(data, target, axes):
    require(axes is not None)
    require(set(axes) <= set(range(len(target))))
    if data == () and len(axes) == 1:
        require(target[axes[0]] == 1)
        return (1,) * len(target)
    require(len(axes) == len(data))
    require(list(axes) == sorted(set(axes)))
    feeds = dict(zip(axes, data, strict=True))
    return tuple(fitting(feeds.get(axis, 1), length) for axis, length in enumerate(target))


RULES = {"numpy": right_aligned, "explicit": mapped, "bidirectional": right_aligned, "pdpd": laid_on, "none": identical}


def scattered(grad, source):
    """Add up the items of `grad` one by one, each where data of shape `source` is broadcast from; exact integers."""
    places = np.broadcast_to(np.arange(np.prod(source, dtype=int)).reshape(source), grad.shape)
    return np.bincount(places.ravel(), grad.ravel(), np.prod(source, dtype=int)).reshape(source)
