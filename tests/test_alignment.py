"""Every rule of every mode: named cases, and all small shapes against the rules written once more."""

import random
from itertools import chain, combinations, product
from typing import get_args

import numpy as np
import pytest
from _modes import FORMS, NAMES, drawn_call
from _reference import reference
from numpy.exceptions import AxisError
from test_sources import HERE

import bcast
from bcast._rules.alignment import Alignment, merge
from bcast._rules.modes import align
from bcast._rules.types import Mode

# Each table: name -> (data's shape, target, other arguments, the alignment or the error and a part of its message).
# All names say what the row is there for. The examples of the systems' own pages are in test_examples.py.

NUMPY = {
    "columns": ((3, 1), (3, 4), {}, Alignment((3, 4), (3, 1))),
    "ones": ((1, 1), (1, 1), {}, Alignment((1, 1), (1, 1))),
    "scalar_to_empty": ((), (0,), {}, Alignment((0,), (1,))),
    "one_to_empty": ((1,), (0,), {}, Alignment((0,), (1,))),
    "empty_to_empty": ((0,), (0,), {}, Alignment((0,), (0,))),
    "new_empty_axis": ((3,), (0, 3), {}, Alignment((0, 3), (1, 3))),
    "empty_repeated": ((1, 0), (4, 0), {}, Alignment((4, 0), (1, 0))),
    "list_target": ((3,), [2, 3], {}, Alignment((2, 3), (1, 3))),
    "64_axes": ((2,), (1,) * 63 + (2,), {}, Alignment((1,) * 63 + (2,), (1,) * 63 + (2,))),
    "65_axes": ((2,), (1,) * 64 + (2,), {}, (ValueError, "`target_shape` expected at most 64 axes, got 65")),
    "surplus_one": ((1, 3), (3,), {}, (ValueError, "at least 2 axes for data of shape (1, 3), got (3,)")),
    "one_to_scalar": ((1,), (), {}, (ValueError, "at least 1 axes for data of shape (1,), got ()")),
    "shrinks": ((3,), (1,), {}, (ValueError, "got (1,): its axis 0 is 1 where data's axis 0 is 3")),
    "empty_to_one": ((0,), (1,), {}, (ValueError, "got (1,): its axis 0 is 1 where data's axis 0 is 0")),
    "empty_to_two": ((0,), (2,), {}, (ValueError, "got (2,): its axis 0 is 2 where data's axis 0 is 0")),
    "two_to_empty": ((2,), (2, 0), {}, (ValueError, "got (2, 0): its axis 1 is 0 where data's axis 0 is 2")),
    "outer_misfit": ((3, 5), (4, 4, 5), {}, (ValueError, "got (4, 4, 5): its axis 1 is 4 where data's axis 0 is 3")),
    "not_two_way": ((2, 1, 5), (1, 4, 5), {}, (ValueError, "its axis 0 is 1 where data's axis 0 is 2")),
    "no_wildcard": ((3,), (-1, 3), {}, (ValueError, "`target_shape` expected lengths of 0 or more, got (-1, 3)")),
    "zero_is_no_wildcard": ((2, 3), (2, 0), {}, (ValueError, "its axis 1 is 0 where data's axis 1 is 3")),
    "axes_mapping": ((3,), (2, 3), {"axes_mapping": [1]}, (ValueError, "`axes_mapping` expected")),
    "empty_axes_mapping": ((), (3,), {"axes_mapping": []}, (ValueError, "`axes_mapping` expected")),
    "broadcast_axes": ((3,), (2, 3), {"broadcast_axes": {0}}, (ValueError, "`broadcast_axes` expected")),
}

MAPPED = {  # mode explicit: target and axes_mapping
    "gray_to_rgb": ((4, 5), (4, 5, 3), [0, 1], Alignment((4, 5, 3), (4, 5, 1))),
    "one_stretches": ((3, 1), (2, 3, 3), [1, 2], Alignment((2, 3, 3), (1, 3, 1))),
    "ones_stretch": ((2, 3, 1, 1), (2, 3, 4, 5), [0, 1, 2, 3], Alignment((2, 3, 4, 5), (2, 3, 1, 1))),
    "outer_one_stretches": ((1, 3), (2, 3), [0, 1], Alignment((2, 3), (1, 3))),
    "first": ((3,), (3, 3), [0], Alignment((3, 3), (3, 1))),
    "second": ((3,), (3, 3), [1], Alignment((3, 3), (1, 3))),
    "spread": ((2, 4), (2, 3, 4, 5), [0, 2], Alignment((2, 3, 4, 5), (2, 1, 4, 1))),
    "plain_copy": ((2, 3), (2, 3), [0, 1], Alignment((2, 3), (2, 3))),
    "scalar": ((), (2, 3), [], Alignment((2, 3), (1, 1))),
    "scalar_to_scalar": ((), (), [], Alignment((), ())),
    "scalar_to_empty": ((), (0,), [], Alignment((0,), (1,))),
    "scalar_onto_length_1": ((), (1, 2), [0], Alignment((1, 2), (1, 1))),
    "scalar_onto_inner_length_1": ((), (2, 1), [1], Alignment((2, 1), (1, 1))),
    "empty": ((0,), (2, 0), [1], Alignment((2, 0), (1, 0))),
    "one_to_empty": ((1,), (2, 0), [1], Alignment((2, 0), (1, 1))),
    "new_empty_axis": ((3,), (3, 0), [0], Alignment((3, 0), (3, 1))),
    "missing": ((3,), (2, 3), None, (ValueError, "`axes_mapping` expected")),
    "missing_for_scalar": ((), (2, 3), None, (ValueError, "`axes_mapping` expected 0 axes")),
    "too_few": ((2, 3), (2, 3), [0], (ValueError, "2 axes, one for each axis of data of shape (2, 3), got [0]")),
    "too_many": ((3,), (2, 3), [0, 1], (ValueError, "1 axes, one for each axis of data of shape (3,), got [0, 1]")),
    "none_of_one": ((3,), (2, 3), [], (ValueError, "1 axes, one for each axis of data of shape (3,), got []")),
    "beyond_output": ((3,), (2, 3), [2], (AxisError, "axes of the output's shape (2, 3), counted from 0, got 2")),
    "from_the_end": ((3,), (2, 3), [-1], (AxisError, "axes of the output's shape (2, 3), counted from 0, got -1")),
    "axis_of_scalar": ((1,), (), [0], (AxisError, "axes of the output's shape (), counted from 0, got 0")),
    "transposed": (
        (3, 2),
        (2, 3),
        [1, 0],
        (ValueError, "strictly increasing axes (data is not transposed), got [1, 0"),
    ),
    "repeated": ((3, 3), (3, 3), [1, 1], (ValueError, "strictly increasing axes (data is not transposed), got [1, 1]")),
    "repeated_ones": ((1, 1), (3, 3), [0, 0], (ValueError, "strictly increasing axes")),
    "more_data_than_output": ((1, 3), (3,), [0, 0], (ValueError, "strictly increasing axes")),
    "shrinks": ((3,), (1, 2), [0], (ValueError, "got (1, 2): its axis 0 is 1 where data's axis 0 is 3")),
    "misfit": ((2, 3), (2, 4, 5), [0, 2], (ValueError, "got (2, 4, 5): its axis 2 is 5 where data's axis 1 is 3")),
    "not_aligned_right": ((3,), (2, 3), [0], (ValueError, "got (2, 3): its axis 0 is 2 where data's axis 0 is 3")),
    "empty_to_one": ((0,), (1,), [0], (ValueError, "got (1,): its axis 0 is 1 where data's axis 0 is 0")),
    "two_to_empty": ((2,), (0,), [0], (ValueError, "got (0,): its axis 0 is 0 where data's axis 0 is 2")),
    "scalar_onto_length_2": ((), (2, 3), [0], (ValueError, "`axes_mapping` expected")),
    "scalar_onto_length_0": ((), (0, 1), [0], (ValueError, "`axes_mapping` expected")),
    "scalar_beyond_output": ((), (1,), [1], (AxisError, "axes of the output's shape (1,), counted from 0, got 1")),
    "scalar_from_the_end": ((), (1,), [-1], (AxisError, "axes of the output's shape (1,), counted from 0, got -1")),
    "scalar_by_two": ((), (1, 1), [0, 1], (ValueError, "`axes_mapping` expected 0 axes")),
}

ADDED = {  # mode explicit: target and broadcast_axes
    "square_by_0": ((3,), (3, 3), {0}, Alignment((3, 3), (1, 3))),
    "square_by_1": ((3,), (3, 3), {1}, Alignment((3, 3), (3, 1))),
    "any_order": ((3,), (2, 3, 4), [2, 0], Alignment((2, 3, 4), (1, 3, 1))),
    "repeated": ((3,), (2, 3), [0, 0], Alignment((2, 3), (1, 3))),
    "scalar_by_all": ((), (2, 3), {0, 1}, Alignment((2, 3), (1, 1))),
    "empty": ((0,), (2, 0), {0}, Alignment((2, 0), (1, 0))),
    "new_empty_axis": ((2,), (2, 0), {1}, Alignment((2, 0), (2, 1))),
    "own_ones": ((1, 3), (2, 1, 3), {0}, Alignment((2, 1, 3), (1, 1, 3))),
    "63_of_64_axes": ((2,), (1,) * 63 + (2,), range(63), Alignment((1,) * 63 + (2,), (1,) * 63 + (2,))),
    "last_of_64_axes": ((1,) * 63, (1,) * 63 + (2,), [63], Alignment((1,) * 63 + (2,), (1,) * 64)),
    "beyond_output": ((3,), (2, 3), [2], (AxisError, "`broadcast_axes` expected axes of the output's shape (2, 3)")),
    "from_the_end": ((3,), (3, 2), [-1], (AxisError, "counted from 0, got -1")),
    "one_of_two_beyond": ((3,), (2, 3), [0, 2], (AxisError, "counted from 0, got 2")),
    "one_does_not_stretch": (
        (1, 3),
        (2, 3),
        {0},
        (ValueError, "axes of `target_shape` (2, 3) that leave data's shape (1, 3)"),
    ),
    "nothing_stretches": ((1,), (2, 3), {0}, (ValueError, "which leave (3,)")),
    "too_few": ((3,), (2, 3, 4), {0}, (ValueError, "which leave (3, 4)")),
    "too_many": ((3,), (2, 3), {0, 1}, (ValueError, "which leave ()")),
    "data_has_one_more": ((3, 1), (2, 3), {0}, (ValueError, "which leave (3,)")),
    "transposed": ((3, 2), (4, 2, 3), {0}, (ValueError, "which leave (2, 3)")),
}

COPIED = {  # broadcast_axes of which there are none: a plain copy, except to an array's shape
    "same": ((2, 3), (2, 3), [], Alignment((2, 3), (2, 3))),
    "scalar": ((), (), set(), Alignment((), ())),
    "scalar_does_not_stretch": ((), (2,), [], (ValueError, "got [], which leave (2,)")),
    "one_does_not_stretch": ((1, 3), (2, 3), [], (ValueError, "got [], which leave (2, 3)")),
    "prefix": ((2,), (2, 3), [], (ValueError, "got [], which leave (2, 3)")),
}

BIDIRECTIONAL = {
    "middle_one": ((1, 4, 1), (1, 4), {}, Alignment((1, 4, 4), (1, 4, 1))),
    "middle_ones": ((5, 2, 3, 1), (1, 3, 6), {}, Alignment((5, 2, 3, 6), (5, 2, 3, 1))),
    "to_scalar": ((2, 3), (), {}, Alignment((2, 3), (2, 3))),
    "rank_grows": ((3,), (1, 1), {}, Alignment((1, 3), (1, 3))),
    "scalars": ((), (), {}, Alignment((), ())),
    "empty_beside_one": ((0,), (1,), {}, Alignment((0,), (0,))),
    "one_beside_empty": ((2, 1), (0,), {}, Alignment((2, 0), (2, 1))),
    "empty_beside_empty": ((0,), (2, 0), {}, Alignment((2, 0), (1, 0))),
    "empty_beside_two": ((0,), (2,), {}, (ValueError, "2 meets 0 at axis -1")),
    "two_beside_empty": ((2,), (0,), {}, (ValueError, "0 meets 2 at axis -1")),
    "no_wildcard": ((3,), (-1,), {}, (ValueError, "`target_shape` expected lengths of 0 or more, got (-1,)")),
    "axes_mapping": ((3,), (2, 3), {"axes_mapping": [1]}, (ValueError, "`axes_mapping` expected")),
    "broadcast_axes": ((3,), (2, 3), {"broadcast_axes": [0]}, (ValueError, "`broadcast_axes` expected")),
}

NCHW = (2, 3, 4, 5)

PDPD = {  # target and axis
    "same": (NCHW, NCHW, -1, Alignment(NCHW, NCHW)),
    "inner_one": ((3, 1, 5), NCHW, 1, Alignment(NCHW, (1, 3, 1, 5))),
    "inner_one_from_0": ((2, 1, 4), NCHW, 0, Alignment(NCHW, (2, 1, 4, 1))),
    "default_counts_trailing_ones": ((4, 1), NCHW, -1, Alignment(NCHW, (1, 1, 4, 1))),
    "default_is_not_trimmed": ((3, 1), NCHW, -1, (ValueError, "its axis 2 is 4 where data's axis 0 is 3")),
    "default_is_not_aligned_right": ((5, 1), NCHW, -1, (ValueError, "its axis 2 is 4 where data's axis 0 is 5")),
    "all_trailing_ones": ((3, 1, 1), NCHW, 1, Alignment(NCHW, (1, 3, 1, 1))),
    "nothing_but_ones": ((1, 1), NCHW, -1, Alignment(NCHW, (1, 1, 1, 1))),
    "ones_overhang": ((1, 1), NCHW, 3, Alignment(NCHW, (1, 1, 1, 1))),
    "trailing_one_overhangs": ((5, 1), NCHW, 3, Alignment(NCHW, (1, 1, 1, 5))),
    "two_trailing_ones_overhang": ((5, 1, 1), NCHW, 3, Alignment(NCHW, (1, 1, 1, 5))),
    "same_rank_overhangs": ((3, 1, 1, 1), NCHW, 1, Alignment(NCHW, (1, 3, 1, 1))),
    "shorter_than_rest": ((3,), (2, 3, 6), 1, Alignment((2, 3, 6), (1, 3, 1))),
    **{f"scalar_at_{axis}": ((), NCHW, axis, Alignment(NCHW, (1, 1, 1, 1))) for axis in range(5)},
    "scalar_at_5": ((), NCHW, 5, (AxisError, "`axis` expected -1, or 0 to 4, for data of shape ()")),
    "scalars": ((), (), -1, Alignment((), ())),
    "scalars_at_0": ((), (), 0, Alignment((), ())),
    "one_to_empty": ((1,), (0,), -1, Alignment((0,), (1,))),
    "empty": ((0,), (2, 0), 1, Alignment((2, 0), (1, 0))),
    "empty_to_one": ((0,), (1,), -1, (ValueError, "its axis 0 is 1 where data's axis 0 is 0")),
    "target_does_not_stretch": ((2, 3), (1, 3), -1, (ValueError, "its axis 0 is 1 where data's axis 0 is 2")),
    "target_does_not_stretch_at_0": ((2,), (1, 3), 0, (ValueError, "its axis 0 is 1 where data's axis 0 is 2")),
    "more_axes": ((1,) * 5, NCHW, -1, (ValueError, "`target_shape` expected")),
    "more_axes_at_0": ((1,) * 5, NCHW, 0, (ValueError, "`target_shape` expected at least 5 axes")),
    "axis_below": ((4, 5), NCHW, -2, (AxisError, "`axis` expected -1, or 0 to 3, for data of shape (4, 5)")),
    "axis_beyond": ((5,), NCHW, 4, (AxisError, "`axis` expected -1, or 0 to 3, for data of shape (5,)")),
    "ones_beyond": ((1,), NCHW, 4, (AxisError, "`axis` expected -1, or 0 to 3, for data of shape (1,)")),
    "overhangs": ((4, 5), NCHW, 3, (ValueError, "`axis` expected at most 2 to lay data of shape (4, 5) onto")),
    "does_not_fall_back": ((4, 5), NCHW, 1, (ValueError, "its axis 1 is 3 where data's axis 0 is 4")),
}

NONE = {
    "same": ((2, 3), (2, 3), {}, Alignment((2, 3), (2, 3))),
    "scalars": ((), (), {}, Alignment((), ())),
    "empty": ((0, 2), (0, 2), {}, Alignment((0, 2), (0, 2))),
    "ones": ((1,), (1,), {}, Alignment((1,), (1,))),
    "one_beside_scalar": ((1,), (), {}, (ValueError, "`target_shape` expected")),
    "scalar_beside_one": ((), (1,), {}, (ValueError, "`target_shape` expected data's own shape ()")),
    "one_does_not_stretch": ((1, 3), (2, 3), {}, (ValueError, "`target_shape` expected data's own shape (1, 3)")),
    "row_does_not_stretch": ((3,), (2, 3), {}, (ValueError, "`target_shape` expected data's own shape (3,)")),
    "transposed": ((3, 2), (2, 3), {}, (ValueError, "`target_shape` expected data's own shape (3, 2)")),
    "axes_mapping": ((3,), (3,), {"axes_mapping": [0]}, (ValueError, "`axes_mapping` expected None in mode 'none'")),
    "broadcast_axes": ((3,), (3,), {"broadcast_axes": []}, (ValueError, "`broadcast_axes` expected")),
    "axis": ((3,), (3,), {"axis": 0}, (ValueError, "`axis` expected")),
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


def test_every_mode_has_its_tests_and_is_told_of():
    assert [mode for mode, _, _ in MODES] == [mode for mode, _ in FORMS.values()]
    assert list(get_args(Mode)) == NAMES
    pages = {name: (HERE / name).read_text("utf-8") for name in ("README.md", "docs/modes.md", "docs/command-line.md")}
    for mode in NAMES:
        assert f"\n        ``{mode!r}``\n" in bcast.broadcast.__doc__
        assert f'| `"{mode}"`' in pages["README.md"]
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
        return
    error, part = expected
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error
    assert part.replace("`target_shape`", f"`{name}`") in str(caught.value)


def stretched(data, alignment):
    return np.broadcast_to(data.reshape(alignment.source), alignment.shape)


@pytest.mark.parametrize(("data", "target", "arguments", "expected"), CASES)
def test_each_mode_gives_the_expected_alignment_or_error(data, target, arguments, expected):
    def check(alignment):
        assert pair(alignment) == pair(expected)

    expect(lambda: align(data, target, **arguments), expected, check)


@pytest.mark.parametrize(("data", "target", "arguments", "expected"), CASES)
def test_infer_shape(data, target, arguments, expected):
    def check(shape):
        assert shape == expected.shape
        assert type(shape) is tuple
        assert all(type(length) is int for length in shape)

    expect(lambda: bcast.infer_shape(data, target, **arguments), expected, check)


@pytest.mark.parametrize(("data", "target", "arguments", "expected"), CASES)
def test_each_mode_gives_the_expected_values(data, target, arguments, expected):
    array = np.arange(np.prod(data, dtype=int)).reshape(data)

    def check(result):
        np.testing.assert_array_equal(result, stretched(array, expected), strict=True)

    expect(lambda: bcast.broadcast(array, target, **arguments), expected, check)


LIKE = cases(*MODES) + cases(
    (
        "explicit",
        {  # no axes: all of them, for a scalar alone
            "like_scalar": ((), (2, 3), [], Alignment((2, 3), (1, 1))),
            "like_scalar_by_set": ((), (2, 3), set(), Alignment((2, 3), (1, 1))),
            "like_scalar_by_array": ((), (2, 3), np.array([], int), Alignment((2, 3), (1, 1))),
            "like_scalar_to_scalar": ((), (), [], Alignment((), ())),
            "like_scalar_to_empty": ((), (2, 0), [], Alignment((2, 0), (1, 1))),
            "like_same_shape": ((2, 3), (2, 3), [], (ValueError, "`broadcast_axes` expected axes of `like` (2, 3)")),
            "like_prefix": ((2,), (2, 3), [], (ValueError, "`broadcast_axes` expected axes of `like` (2, 3)")),
            "like_one": ((1,), (1,), [], (ValueError, "`broadcast_axes` expected axes of `like` (1,)")),
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
    assert hash(alignment) == hash(Alignment((2, 3), (1, 3)))
    assert alignment != Alignment((2, 3), (2, 1))
    assert alignment != Alignment((3, 3), (1, 3))
    assert repr(alignment) == "Alignment(shape=(2, 3), source=(1, 3))"
    for name in ("shape", "source"):
        with pytest.raises(AttributeError):
            setattr(alignment, name, ())


MERGED = {
    "nothing": ([], ()),
    "one": ([(2, 3)], (2, 3)),
    "three": ([(1, 2), (3, 1), (3, 2)], (3, 2)),
    "ranks": ([(6, 7), (5, 6, 1), (7,), (5, 1, 7)], (5, 6, 7)),
    "one_beside_empty": ([(1,), (0,)], (0,)),
    "empty_beside_one": ([(0,), (1,), ()], (0,)),
    "three_beside_two_later": ([(3,), (1,), (2,)], (ValueError, "got (3,) and (1,) and (2,): 2 meets 3 at axis -1")),
    "empty_beside_two": ([(2, 0), (2, 2)], (ValueError, "2 meets 0 at axis -1")),
    "uncountable": ([(1 << 40, 1), (1 << 40,)], (ValueError, f"at most {np.iinfo(np.intp).max} elements")),
}


@pytest.mark.parametrize(("shapes", "expected"), MERGED.values(), ids=MERGED)
def test_merged_shapes_are_numpys(shapes, expected):
    if expected and expected[0] is ValueError:
        with pytest.raises(ValueError, match=r"^`them` expected ") as caught:
            merge(shapes, "them")
        assert expected[1] in str(caught.value)
    else:
        assert merge(shapes, "them") == expected


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
    """What a call returns, or None if it raises a `ValueError`."""
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
