"""Segments of an axis: the repetitions of each item side by side, which `repeat` makes and `unrepeat` sums.

In: one count for all items of an axis, or an array of counts. Out: which items make a chunk of repetitions.
"""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bcast._dask.chunks import cuts

Range: TypeAlias = tuple[int, int]  # items along an axis: the index of the first, and the index after the last


class Piece(NamedTuple):
    """The items and counts that make a chunk of repetitions."""

    items: Range
    counts: Any  # how often the chunk repeats each item: one number for all items, or an array


class EqualSegments:
    """Segments of the same length for all items."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.grain = count if count > 1 else 0  # chunks are cut between items, but stay whole if nothing is repeated

    def chunks_from(self, bounds: Sequence[int]) -> tuple[int, ...]:
        """Return the chunks of repetitions of the chunks of items between `bounds`."""
        return _lengths_between(np.multiply(bounds, self.count).tolist())

    def cut_at_items(self, natural: tuple[int, ...], largest: tuple[int, ...]) -> tuple[int, ...]:  # noqa: ARG002
        """Return the `largest` chunks unchanged: they are multiples of the grain, so each ends where an item ends."""
        return largest

    def chunks_of_whole(self, chunks: tuple[int, ...]) -> tuple[int, ...]:
        """Return chunks of repetitions of which none cuts those of an item, near given ones."""
        return _lengths_between([-(-end // self.count) * self.count for end in accumulate(chunks, initial=0)])

    def piece(self, begin: int, end: int, bounds: Sequence[int]) -> Piece:  # noqa: ARG002 (other segments need them)
        """Return the items that are repeated to the places from `begin` to `end`, and the count of each."""
        if begin == end:
            return Piece((0, 0), 1)
        first, last = begin // self.count, -(-end // self.count)
        before, behind = begin - first * self.count, last * self.count - end
        if not before and not behind:
            return Piece((first, last), self.count)
        counts: NDArray[np.int64] = np.full(last - first, self.count, np.int64)
        return Piece((first, last), _without_ends(counts, before, behind))


class CountedSegments:
    """Segments whose lengths are the items' own counts."""

    def __init__(self, counts: Any) -> None:
        self.ends = np.append(0, np.cumsum(counts))  # item i fills the places from ends[i] to ends[i + 1]
        self.grain = 1  # chunks are cut anywhere, and later moved to the end of an item

    def chunks_from(self, bounds: Sequence[int]) -> tuple[int, ...]:
        """Return the chunks of repetitions of the chunks of items between `bounds`."""
        return _lengths_between(self.ends[list(bounds)].tolist())

    def cut_at_items(self, natural: tuple[int, ...], largest: tuple[int, ...]) -> tuple[int, ...]:
        """Cut `natural` chunks to at most the `largest` length, at the ends of items that are no longer than this."""
        most = max(largest)
        lengths = []
        for begin, end in cuts(natural):
            at = begin
            while at < end:
                stop = min(at + most, end)
                item_end = int(self.ends[np.searchsorted(self.ends, stop, "right") - 1])
                stop = item_end if item_end > at else stop
                lengths.append(stop - at)
                at = stop
        return tuple(lengths) or (0,)

    def chunks_of_whole(self, chunks: tuple[int, ...]) -> tuple[int, ...]:
        """Return chunks of repetitions of which none cuts those of an item, near given ones."""
        bounds = list(accumulate(chunks, initial=0))
        return _lengths_between(self.ends[np.searchsorted(self.ends, bounds)].tolist())

    def piece(self, begin: int, end: int, bounds: Sequence[int]) -> Piece:
        """Return the items that are repeated to the places from `begin` to `end`, and the count of each.

        An item that is repeated 0 times may go to either side of a cut: to the side that puts the cut at one of the
        data's `bounds`, if possible.
        """
        first = self._border(begin, bounds, 0)
        last = len(self.ends) - 1 if end == self.ends[-1] else self._border(end, bounds, 1)
        counts = np.diff(self.ends[first : last + 1])
        return Piece((first, last), _without_ends(counts, begin - self.ends[first], self.ends[last] - end))

    def _border(self, at: int, bounds: Sequence[int], behind: int) -> int:
        """Return the first item after a cut. If the cut is within an item, return it, or the next if `behind` is 1."""
        if at == 0:
            return 0
        lowest, highest = np.searchsorted(self.ends, at, "left"), np.searchsorted(self.ends, at, "right") - 1
        if highest < lowest:
            return int(highest) + behind
        bound = bisect_left(bounds, lowest)
        return int(bounds[bound] if bound < len(bounds) and bounds[bound] <= highest else lowest)


Segments: TypeAlias = EqualSegments | CountedSegments


def segments_of(count: Any) -> Segments:
    """Return the segments of an axis, from one count for all items or from an array of counts."""
    return EqualSegments(count) if isinstance(count, int) else CountedSegments(count)


def _lengths_between(bounds: Sequence[int]) -> tuple[int, ...]:
    """Return the lengths of the chunks between bounds, without empty ones unless all are empty."""
    return tuple(end - begin for begin, end in pairwise(bounds) if end > begin) or (0,)


def _without_ends(counts: NDArray[Any], before: int, behind: int) -> NDArray[Any]:
    """Subtract the repetitions outside of a chunk from the first and the last count."""
    if len(counts):
        counts[0] -= before
        counts[-1] -= behind
    return counts
