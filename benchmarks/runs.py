"""Saved runs: read, put together, and picked from."""

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.copies import DTYPES, SEED, STATES, UNITS, grid, random_broadcasts
from benchmarks.harness import Measured
from benchmarks.peers import LIMIT

__all__ = ["Run", "known", "load", "of_dtype", "of_state", "read_report", "to_limit", "to_numpy", "to_peer"]

Key = tuple[str, str, str, int]  # name, dtype, state, threads


@dataclass
class Run:
    """What one machine measured on one number of threads.

    Attributes
    ----------
    machine : str
        Versions, processor and threads.
    families : dict
        By family: what was measured of a cell by (name, dtype, state, threads), in the order of the table.
    peers : dict
        Competitor, or package, to its name and version.
    """

    machine: str
    families: dict[str, dict[Key, Measured]] = field(default_factory=lambda: defaultdict(dict))
    peers: dict[str, str] = field(default_factory=dict)

    @property
    def head(self) -> list[str]:
        """The lines above every table."""
        return [self.machine, f"peers: {'; '.join(self.peers.values()) or 'none'}"]

    def cells(self, family: str) -> list[Measured]:
        """Return all cells of a family."""
        return list(self.families[family].values())

    def groups(self, family: str) -> dict[str, list[Measured]]:
        """Return the cells of each group of a family."""
        groups: dict[str, list[Measured]] = defaultdict(list)
        for cell in self.cells(family):
            groups[cell.group].append(cell)
        return groups

    def line(self, pattern: str, state: str, threads: int) -> list[Measured]:
        """Return the cells of one pattern that scales, smallest first."""
        chosen = [
            cell
            for cell in self.cells("scaling")
            if (cell.group, cell.state, cell.threads) == (pattern, state, threads)
        ]
        return sorted(chosen, key=lambda cell: cell.nbytes)


def of_state(cells: Iterable[Measured], state: str) -> list[Measured]:
    """Return the cells of one state."""
    return [cell for cell in cells if cell.state == state]


def of_dtype(cells: Iterable[Measured], dtype: str) -> list[Measured]:
    """Return the cells of one dtype."""
    return [cell for cell in cells if cell.dtype == dtype]


def load(paths: Iterable[Path]) -> Run:
    """Read saved runs, and take each cell's fastest round and largest error.

    Raises
    ------
    ValueError
        If runs are of different machines, versions or numbers of threads, so that their times cannot be compared; if
        there is no cell.
    """
    run = None
    for path in paths:
        saved = json.loads(path.read_text(encoding="utf-8"))
        run = run or Run(saved["machine"])
        if saved["machine"] != run.machine:
            raise ValueError(f"{path} expected a run of:\n{run.machine}\ngot one of:\n{saved['machine']}")
        for name, version in saved["peers"].items():
            if run.peers.setdefault(name, version) != version:
                raise ValueError(f"{path} expected {run.peers[name]}, got {version}")
        for cell in saved["cells"]:
            add(run, Measured(**cell))
    if run is None or not any(run.families.values()):
        raise ValueError("the runs expected cells, got none")

    for family, cells in run.families.items():  # dtypes and states of one name are adjacent, in their original order
        order = list(dict.fromkeys(key[0] for key in cells))
        run.families[family] = dict(sorted(cells.items(), key=lambda item: order.index(item[0][0])))
    return run


def add(run: Run, cell: Measured) -> None:
    """Add a cell to a run, or to what the run has of it."""
    cells = run.families[cell.family]
    key = cell.name, cell.dtype, cell.state, cell.threads
    if key in cells:
        before = cells[key]
        times = {name: min(seconds, before.times.get(name, math.inf)) for name, seconds in cell.times.items()}
        errors = {name: max(error, before.errors.get(name, 0.0)) for name, error in cell.errors.items()}
        cell = replace(cell, times={**before.times, **times}, errors={**before.errors, **errors})
    cells[key] = cell


def read_report(path: Path) -> Run:
    """Read the cells of a report's tables: the grid, the random shapes and the sizes, as far as pictures need them.

    Of the peers, a report names only the best one of each cell.

    Raises
    ------
    ValueError
        If there is no table.
    """
    text = path.read_text(encoding="utf-8")
    machine, peers = [line.strip() for line in text.splitlines() if line.startswith("    ")][:2]
    run = Run(machine)
    run.peers = {each.partition(" ")[0]: each for each in peers.removeprefix("peers: ").split("; ")}

    known_broadcasts = {broadcast.name: broadcast for dtype in DTYPES for broadcast in grid(dtype)}
    known_broadcasts |= {broadcast.name: broadcast for broadcast, _ in random_broadcasts(SEED)}
    for family, title in (("grid", "The grid"), ("random", "Random shapes")):
        for name, dtype, *figures in rows_of(text, title):
            broadcast = known_broadcasts[name]
            for state, columns in zip(STATES, (figures[:4], figures[4:]), strict=True):
                if columns[0]:
                    nbytes, times = broadcast.nbytes(dtype), times_of(columns, broadcast.nbytes(dtype))
                    of_cell = (family, name, broadcast.group, dtype, state, 0, nbytes, broadcast.innermost)
                    add(run, Measured(*of_cell, times))
    for name, state, threads, *figures in rows_of(text, "From 1 KB to the largest size that fits"):
        pattern, _, size = name.rpartition(", ")
        number, unit = size.split()
        nbytes = int(number) << next(shift for shift, each in UNITS if each == unit)
        of_cell = ("scaling", name, pattern, "float32", state, int(threads), nbytes, 0)
        add(run, Measured(*of_cell, times_of(figures, nbytes)))
    if not any(run.families.values()):
        raise ValueError(f"{path} expected a report with tables, got none")
    return run


def rows_of(text: str, title: str) -> list[list[str]]:
    """Return the rows of the table under a title, without its head."""
    section = text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    rows = [[cell.strip(" *") for cell in line.split("|")[1:-1]] for line in section.splitlines() if line[:1] == "|"]
    return rows[2:]


def times_of(figures: list[str], nbytes: int) -> dict[str, float]:
    """Return the times behind these figures: GB/s, share of the limit, ratio to NumPy, ratio to the best peer."""
    speed, share, numpy, peer = figures
    own = nbytes / float(speed) / 1e9
    times = {"bcast": own, "numpy": own * float(numpy)}
    if share:
        times[LIMIT] = own * float(share.rstrip("%")) / 100
    if peer:
        ratio, name = peer.replace("*", "").split()
        times[name] = own * float(ratio)
    return times


def to_numpy(cell: Measured) -> float:
    """Return the ratio to NumPy."""
    return cell.ratio("numpy")


def to_peer(cell: Measured) -> float:
    """Return the ratio to the best peer, NaN where there is none."""
    return cell.ratio(cell.best_peer or "")


def to_limit(cell: Measured) -> float:
    """Return the share of the limit that is reached, NaN where there is none."""
    return cell.ratio(LIMIT)


def known(ratio: Callable[[Measured], float], cells: Iterable[Measured]) -> list[Measured]:
    """Return the cells that have a ratio."""
    return [cell for cell in cells if not math.isnan(ratio(cell))]
