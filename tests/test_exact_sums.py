"""Sums and means of float64 are the correctly rounded ones, whatever the terms: compared with exact fractions."""

import math
from fractions import Fraction

import numpy as np
import pytest
from _ways import SUMS, summed
from test_errors import rows

import bcast

LARGEST = np.finfo(float).max


def with_any_bits(rng, n):
    terms = rng.integers(0, 2**64, n, dtype=np.uint64).view(float)
    return np.where(np.isfinite(terms), terms, 1)


def cancelling(rng, n):
    large = rng.standard_normal(n // 3 + 1) * 2.0 ** rng.integers(-50, 50, n // 3 + 1)
    small = rng.standard_normal(n // 3 + 1) * 2.0**-60
    return rng.permutation(np.resize(np.concatenate([large, -large, small]), n))


TERMS = {
    "of_any_bits": with_any_bits,
    "cancelling": cancelling,
    "powers_of_two": lambda rng, n: rng.choice([1.0, -1], n) * 2.0 ** rng.integers(-120, 120, n),
    "ties": lambda rng, n: rng.permutation(
        np.resize([1, 2.0**-53, 0, 0, rng.choice([0.0, 1, -1]) * 2.0**-105, 1, -1], n)
    ),
    "large": lambda rng, n: rng.choice([1.0, -1], n) * LARGEST * rng.choice([1, 0.5, 0.25], n),
    "subnormal": lambda rng, n: rng.integers(-99, 99, n) * 5e-324 * rng.choice([1, 2.0**40], n),
    "of_many_sizes": lambda rng, n: rng.standard_normal(n) * 10.0 ** rng.integers(-30, 30, n),
    "uniform": lambda rng, n: rng.random(n),
    "normal": lambda rng, n: rng.standard_normal(n),
    "tenths": lambda rng, n: rng.integers(-1000, 1000, n) / 10,
    "growing": lambda rng, n: np.exp(np.arange(n) / 9.0 % 40) * rng.choice([1, -1, 0], n),
    "zeros": lambda rng, n: rng.choice([0.0, -0.0], n),
}
CUTS = {  # shapes, and axes that are summed
    "a_run": ((1000,), (0,)),
    "a_long_run": ((5003,), (0,)),
    "short_runs": ((40, 3), (1,)),
    "runs": ((9, 70), (1,)),
    "long_runs": ((5, 1030), (1,)),
    "interleaved": ((6, 37, 2), (1,)),
    "few_rows": ((7, 60), (0,)),
    "rows": ((66, 37), (0,)),
    "many_rows": ((600, 17), (0,)),
    "narrow_rows": ((500, 2), (0,)),
    "channels": ((4, 3, 90), (0, 2)),
    "pools": ((8, 2, 6, 3), (1, 3)),
    "all": ((3, 5, 7), (0, 1, 2)),
}


def rounded(exact):
    """A fraction as the nearest float, ties to even: Python divides integers so."""
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def exact_sums(terms, axes):
    """The exact sums, in C order, and how many terms each has."""
    count = math.prod(terms.shape[axis] for axis in axes)
    last = np.moveaxis(terms, axes, range(-len(axes), 0)).reshape(terms.size // max(count, 1), count)
    return [sum(map(Fraction, row), Fraction(0)) for row in last.tolist()], count


@pytest.mark.parametrize(("leaf", "threads"), SUMS)
@pytest.mark.parametrize("make", **rows(TERMS))
def test_sums_and_means_are_rounded_once(make, leaf, threads):
    rng = np.random.default_rng(3)
    for name, (shape, axes) in CUTS.items():
        terms = make(rng, math.prod(shape)).reshape(shape)
        sums, count = exact_sums(terms, axes)
        source = tuple(1 if axis in axes else length for axis, length in enumerate(shape))
        for grad in (terms, np.asfortranarray(terms), np.repeat(terms, 2, -1)[..., ::2]):
            with summed(leaf, threads):
                total, mean = bcast.sum(grad, axes), bcast.mean(grad, axes)
                adjoint = bcast.unbroadcast(grad, source)
            assert np.ravel(total).tolist() == [rounded(exact) for exact in sums], (name, grad.strides)
            assert np.ravel(mean).tolist() == [rounded(exact / count) for exact in sums], (name, grad.strides)
            assert np.ravel(adjoint).tolist() == np.ravel(total).tolist()


@pytest.mark.parametrize("make", **rows(TERMS))
def test_runs_of_counts_are_rounded_once(make):
    rng = np.random.default_rng(4)
    counts = np.array([3, 0, 1, 40, 7, 2, 2, 2, 9, 300, 5])
    for width in (1, 2, 3, 9):
        terms = make(rng, counts.sum() * width).reshape(-1, width)
        for leaf, threads in SUMS:
            with summed(leaf, threads):
                found = bcast.unrepeat(terms, counts, axis=0)
            for k, end in enumerate(np.cumsum(counts)):
                if counts[k] == 0:
                    assert not found[k].any()
                    continue
                exact = exact_sums(terms[end - counts[k] : end], (0,))[0]
                assert found[k].tolist() == [rounded(each) for each in exact]


@pytest.mark.parametrize("make", **rows(TERMS))
def test_terms_that_come_several_times_are_rounded_once(make):
    terms = make(np.random.default_rng(5), 60).reshape(6, 10)
    sums = exact_sums(terms, (1,))[0]
    for times in (2, 3, 10**6 + 1, 2**40 - 1):
        grad = np.broadcast_to(terms[:, np.newaxis], (6, times, 10))
        assert bcast.sum(grad, (1, 2)).tolist() == [rounded(exact * times) for exact in sums]
        assert bcast.mean(grad, (1, 2)).tolist() == [rounded(exact / 10) for exact in sums]


@pytest.mark.parametrize("make", **rows(TERMS))
def test_numbers_beside_nan_are_rounded_once(make):
    rng = np.random.default_rng(6)
    terms = make(rng, 900).reshape(30, 30)
    with_nan = np.where(rng.random(terms.shape) < 0.1, np.nan, terms)
    expected = [rounded(sum(map(Fraction, row[row == row].tolist()), Fraction(0))) for row in with_nan]
    assert bcast.nansum(with_nan, 1).tolist() == expected
    assert bcast.nansum(terms, 1).tolist() == bcast.sum(terms, 1).tolist()


@pytest.mark.parametrize("name", ["f4", "f2"])
def test_narrower_results_are_rounded_once(name):
    """Beside the middle of two narrow numbers, where rounding to float64 first would leave a tie."""
    step = np.finfo(name).eps
    for below in (0.0, 2.0**-60, -(2.0**-60), 2.0**-200):
        for terms in ([1, step / 2, below], [1 + step, step / 2, below], [-1, -step / 2, below]):
            many = np.tile(terms, (5, 1))
            right = 1 + step * (below > 0) if terms[0] == 1 else 1 + step * (1 + (below >= 0)) if terms[0] > 0 else None
            right = -(1 + step * (below < 0)) if right is None else right
            assert bcast.sum(many, 1, name).tolist() == [right] * 5
            assert bcast.sum(many.T.copy(), 0, name).tolist() == [right] * 5


def test_a_narrower_mean_is_rounded_once():
    step = float(np.finfo("f4").eps)
    for below in (0.0, 2.0**-60, -(2.0**-60)):
        terms = np.tile([3, 3 * step / 2, 3 * below], (4, 1))
        assert bcast.mean(terms, 1, "f4").tolist() == [1 + step * (below > 0)] * 4
