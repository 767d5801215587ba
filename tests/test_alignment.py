"""Every rule of every mode: named cases, and all small shapes, compared with a second implementation of the rules."""

import random
from itertools import chain, combinations, product
from typing import get_args

import numpy as np
import pytest
from _modes import FORMS, NAMES, drawn_call
from _reference import reference
from numpy.exceptions import AxisError
from test_errors import refuse, untouched
from test_sources import HERE

import bcast
from bcast._rules.alignment import Alignment, align
from bcast._rules.types import Mode

# Each table: name -> (data's shape, target, other arguments, the alignment or the error and the argument it names).
# All names say what the row is there for. The examples of the systems' own pages are in test_examples.py.

NUMPY = {
    "list_target": ((3,), [2, 3], {}, Alignment((2, 3), (1, 3))),
    "64_axes": ((2,), (1,) * 63 + (2,), {}, Alignment((1,) * 63 + (2,), (1,) * 63 + (2,))),
    "65_axes": ((2,), (1,) * 64 + (2,), {}, (ValueError, "target_shape")),
    "surplus_one": ((1, 3), (3,), {}, (ValueError, "target_shape")),
    "two_to_empty": ((2,), (2, 0), {}, (ValueError, "target_shape")),
    "no_wildcard": ((3,), (-1, 3), {}, (ValueError, "target_shape")),
}

MAPPED = {  # mode explicit: target and axes_mapping
    "ones_stretch": ((2, 3, 1, 1), (2, 3, 4, 5), [0, 1, 2, 3], Alignment((2, 3, 4, 5), (2, 3, 1, 1))),
    "misfit": ((2, 3), (2, 4, 5), [0, 2], (ValueError, "target_shape")),
    "scalar_onto_length_2": ((), (2, 3), [0], (ValueError, "axes_mapping")),
    "scalar_by_two": ((), (1, 1), [0, 1], (ValueError, "axes_mapping")),
}

ADDED = {  # mode explicit: target and broadcast_axes
    "repeated": ((3,), (2, 3), [0, 0], Alignment((2, 3), (1, 3))),
    "63_of_64_axes": ((2,), (1,) * 63 + (2,), range(63), Alignment((1,) * 63 + (2,), (1,) * 63 + (2,))),
    "last_of_64_axes": ((1,) * 63, (1,) * 63 + (2,), [63], Alignment((1,) * 63 + (2,), (1,) * 64)),
    "one_does_not_stretch": ((1, 3), (2, 3), {0}, (ValueError, "broadcast_axes")),
    "too_few": ((3,), (2, 3, 4), {0}, (ValueError, "broadcast_axes")),
}

COPIED = {  # empty broadcast_axes: a plain copy, except to an array's shape
    "same": ((2, 3), (2, 3), [], Alignment((2, 3), (2, 3))),
    "scalar_does_not_stretch": ((), (2,), [], (ValueError, "broadcast_axes")),
    "one_does_not_stretch": ((1, 3), (2, 3), [], (ValueError, "broadcast_axes")),
}

BIDIRECTIONAL = {
    "middle_ones": ((5, 2, 3, 1), (1, 3, 6), {}, Alignment((5, 2, 3, 6), (5, 2, 3, 1))),
    "empty_beside_two": ((0,), (2,), {}, (ValueError, "target_shape")),
}

NCHW = (2, 3, 4, 5)

PDPD = {  # target and axis
    "inner_one": ((3, 1, 5), NCHW, 1, Alignment(NCHW, (1, 3, 1, 5))),
    "default_counts_trailing_ones": ((4, 1), NCHW, -1, Alignment(NCHW, (1, 1, 4, 1))),
    "default_is_not_trimmed": ((3, 1), NCHW, -1, (ValueError, "target_shape")),
    "trailing_one_overhangs": ((5, 1), NCHW, 3, Alignment(NCHW, (1, 1, 1, 5))),
    **{f"scalar_at_{axis}": ((), NCHW, axis, Alignment(NCHW, (1, 1, 1, 1))) for axis in range(5)},
    "scalar_at_5": ((), NCHW, 5, (AxisError, "axis")),
    "target_does_not_stretch": ((2, 3), (1, 3), -1, (ValueError, "target_shape")),
    "more_axes": ((1,) * 5, NCHW, -1, (ValueError, "target_shape")),
    "axis_below": ((4, 5), NCHW, -2, (AxisError, "axis")),
    "axis_beyond": ((5,), NCHW, 4, (AxisError, "axis")),
    "overhangs": ((4, 5), NCHW, 3, (ValueError, "axis")),
    "does_not_fall_back": ((4, 5), NCHW, 1, (ValueError, "target_shape")),
}

NONE = {
    "one_beside_scalar": ((1,), (), {}, (ValueError, "target_shape")),
    "one_does_not_stretch": ((1, 3), (2, 3), {}, (ValueError, "target_shape")),
}


def cases(*tables):
    """All rows of (mode, table, argument), where the table's third column is that argument or many by name."""
    return [
        pytest.param(
            data,
            target,
            {"mode": mode, **({argument: value} if argument else value)},
            expected,
            id=f"{argument if mode == 'explicit' else mode}-{name}",
        )
        for mode, table, argument in tables
        for name, (data, target, value, expected) in table.items()
    ]


MODES = [
    ("numpy", NUMPY, None),
    ("explicit", MAPPED, "axes_mapping"),
    ("explicit", ADDED, "broadcast_axes"),
    ("bidirectional", BIDIRECTIONAL, None),
    ("pdpd", PDPD, "axis"),
    ("none", NONE, None),
]
CASES = cases(*MODES, ("explicit", COPIED, "broadcast_axes"))


def test_every_mode_has_tests_and_documentation():
    assert [mode for mode, _, _ in MODES] == [mode for mode, _ in FORMS.values()]
    assert list(get_args(Mode)) == NAMES
    pages = {name: (HERE / name).read_text("utf-8") for name in ("docs/modes.md", "docs/command-line.md")}
    for mode in NAMES:
        assert f"\n        ``{mode!r}``\n" in bcast.broadcast.__doc__
        assert f'| `"{mode}"`' in pages["docs/modes.md"]
        assert f"\n## {mode}\n" in pages["docs/modes.md"]
        assert f"`{mode}`" in pages["docs/command-line.md"]


def test_most_drawn_calls_fit():
    rng = random.Random(1)
    for form in FORMS:
        calls = [drawn_call(rng.choice, (2, 3, 1, 0), form) for _ in range(100)]
        assert sum([reference(data, target, **arguments) is not None for data, target, arguments in calls]) > 90


def pair(alignment):
    return alignment.shape, alignment.source


def expect(call, expected, check, name="target_shape"):
    """Check what `call` returns against the alignment, or what it raises; the message calls the target `name`."""
    if isinstance(expected, Alignment):
        check(call())
    else:
        refuse(call, expected[0], expected[1].replace("target_shape", name))


def stretched(data, alignment):
    return np.broadcast_to(data.reshape(alignment.source), alignment.shape)


@pytest.mark.parametrize(("data", "target", "arguments", "expected"), CASES)
def test_each_mode_gives_the_expected_alignment_or_error(data, target, arguments, expected):
    array = np.arange(np.prod(data, dtype=int)).reshape(data)

    def check_shape(shape):
        assert shape == expected.shape
        assert type(shape) is tuple
        assert all(type(length) is int for length in shape)

    def check_values(result):
        np.testing.assert_array_equal(result, stretched(array, expected), strict=True)

    def check_pair(alignment):
        assert pair(alignment) == pair(expected)

    expect(lambda: align(data, target, **arguments), expected, check_pair)
    expect(lambda: bcast.infer_shape(data, target, **arguments), expected, check_shape)
    expect(lambda: bcast.broadcast(array, target, **arguments), expected, check_values)
    if not isinstance(expected, Alignment):
        with untouched(target if len(target) <= 64 and min(target, default=0) >= 0 else (2, 3), int) as out:
            refuse(lambda: bcast.broadcast(array, target, **arguments, out=out), *expected)


LIKE = cases(*MODES) + cases(
    (
        "explicit",
        {  # no axes: all of them, for a scalar alone
            "like_scalar": ((), (2, 3), [], Alignment((2, 3), (1, 1))),
            "like_scalar_by_set": ((), (2, 3), set(), Alignment((2, 3), (1, 1))),
            "like_scalar_by_array": ((), (2, 3), np.array([], int), Alignment((2, 3), (1, 1))),
            "like_scalar_to_scalar": ((), (), [], Alignment((), ())),
            "like_scalar_to_empty": ((), (2, 0), [], Alignment((2, 0), (1, 1))),
            "like_same_shape": ((2, 3), (2, 3), [], (ValueError, "broadcast_axes")),
            "like_prefix": ((2,), (2, 3), [], (ValueError, "broadcast_axes")),
            "like_one": ((1,), (1,), [], (ValueError, "broadcast_axes")),
        },
        "broadcast_axes",
    )
)


@pytest.mark.parametrize(
    ("data", "target", "arguments", "expected"),
    [case for case in LIKE if len(case.values[1]) <= 64 and min(case.values[1], default=0) >= 0],
)
def test_broadcast_like(data, target, arguments, expected):
    array = np.arange(np.prod(data, dtype=int)).reshape(data)
    like = np.empty(target, "f2")

    def check(result):
        np.testing.assert_array_equal(result, stretched(array, expected), strict=True)

    expect(lambda: bcast.broadcast_like(array, like, **arguments), expected, check, name="like")


def test_default_mode_is_numpy_and_default_axis_is_at_the_right():
    assert pair(align((3,), (2, 3))) == ((2, 3), (1, 3))
    assert pair(align((4, 1), NCHW, mode="pdpd")) == (NCHW, (1, 1, 4, 1))


def test_alignment_is_a_value():
    alignment = Alignment((2, 3), (1, 3))
    assert alignment == Alignment((2, 3), (1, 3))
    assert alignment != Alignment((2, 3), (2, 1))
    assert alignment != Alignment((3, 3), (1, 3))
    assert repr(alignment) == "Alignment(shape=(2, 3), source=(1, 3))"
    for name in ("shape", "source"):
        with pytest.raises(AttributeError):
            setattr(alignment, name, ())


# All shapes of at most three axes.

SHAPES = [shape for rank in range(4) for shape in product(range(4), repeat=rank)]


def all_mappings(data, target):
    """All axes for data's rank, from below 0 to beyond the output; some for one axis more and less; and none given."""
    yield {"axes_mapping": None}
    rank, axes = len(data), range(-1, len(target) + 1)
    others = [product(axes, repeat=1), combinations(axes, 2)] if rank == 0 else [combinations(axes, rank - 1)]
    for mapping in chain(product(axes, repeat=rank), *others, combinations(range(len(target)), rank + 1)):
        yield {"axes_mapping": mapping}


def all_added(_, target):
    axes = range(-1, len(target) + 1)
    for count in range(len(axes) + 1):
        for added in combinations(axes, count):
            yield {"broadcast_axes": added}


CHOICES = {
    (): lambda _data, _target: [{}],
    ("axes_mapping",): all_mappings,
    ("broadcast_axes",): all_added,
    ("axis",): lambda _data, target: ({"axis": axis} for axis in range(-2, len(target) + 2)),
}


def outcome(call, *arguments, **named):
    """The result of a call, or None if it raises a `ValueError`."""
    try:
        return call(*arguments, **named)
    except ValueError:
        return None


@pytest.mark.parametrize(("mode", "names"), FORMS.values(), ids=FORMS)
def test_all_small_shapes(mode, names):
    accepted = 0
    choices = CHOICES[names]
    for data, target in product(SHAPES, SHAPES):
        for arguments in choices(data, target):
            found = outcome(align, data, target, mode=mode, **arguments)
            found = found and pair(found)
            if found != reference(data, target, mode=mode, **arguments):
                pytest.fail(f"{data} -> {target} by {mode} {arguments} gives {found}")
            accepted += found is not None
    assert accepted >= len(SHAPES)


def test_all_small_shapes_as_numpy():
    zero = np.zeros(())
    for data, target in product(SHAPES, SHAPES):
        array = np.broadcast_to(zero, data)
        to = outcome(np.broadcast_to, array, target)
        assert outcome(bcast.infer_shape, data, target) == (None if to is None else to.shape), (data, target)
        both = outcome(np.broadcast_shapes, data, target)
        assert outcome(bcast.infer_shape, data, target, mode="bidirectional") == both, (data, target)
        assert outcome(bcast.broadcast_shapes, data, target) == both, (data, target)
