"""Saved runs of the suites: read, put together, and summed up."""

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from peers import LIMIT, OWN
from shapes import SEED, UNITS, innermost, random_workloads
from workloads import DTYPES, STATES, Workload, grid

from bcast._benchmark.table import LOST

SUITES = ("grid", "random", "scaling", "use", "adjoint", "numpy")

Key = tuple[str, str, str, int]  # workload, dtype, state, threads


@dataclass(frozen=True)
class Cell:
    """The measurements of one workload, dtype and state.

    Attributes
    ----------
    workload, dtype, state : str
        The workload, its dtype, and the state: 'fresh' or 'warm'.
    nbytes : int
        Bytes of the output; for sums, bytes of the terms.
    times : mapping of str to float
        Seconds of one call, by competitor.
    errors : mapping of str to float
        For sums: the error of the worst item of the result, in units in the last place, by competitor.
    """

    workload: str
    dtype: str
    state: str
    nbytes: int
    times: Mapping[str, float]
    errors: Mapping[str, float] = field(default_factory=dict)

    def ratio(self, name: str) -> float:
        """Return the time of a competitor divided by that of bcast; NaN if it has none."""
        return self.times.get(name, math.nan) / self.times["bcast"]

    @property
    def best_peer(self) -> str | None:
        """The fastest competitor except NumPy."""
        return min((name for name in self.times if name not in OWN), key=self.times.__getitem__, default=None)

    @property
    def lost_to(self) -> list[str]:
        """Those of NumPy and the best peer that are faster than bcast."""
        return [name for name in ("numpy", self.best_peer) if name and self.ratio(name) < LOST]

    @property
    def bandwidth(self) -> float:
        """Bytes that bcast writes, or sums, in a second."""
        return self.nbytes / self.times["bcast"]


@dataclass
class Run:
    """What one machine measured on one number of threads.

    Attributes
    ----------
    machine : str
        Versions, processor and threads.
    suites : dict
        By suite: cell by (workload, dtype, state, threads), in the order of the suite.
    family : dict
        Workload to the family it belongs to.
    innermost : dict
        Workload to the number of repetitions along its innermost repeated axis.
    peers : dict
        Competitor to its name and version.
    """

    machine: str
    suites: dict[str, dict[Key, Cell]] = field(default_factory=lambda: {suite: {} for suite in SUITES})
    family: dict[str, str] = field(default_factory=dict)
    innermost: dict[str, int] = field(default_factory=dict)
    peers: dict[str, str] = field(default_factory=dict)

    @property
    def head(self) -> list[str]:
        """The lines above every table."""
        return [self.machine, f"peers: {'; '.join(self.peers.values()) or 'none'}"]

    def families(self, suite: str) -> dict[str, list[str]]:
        """Return the workloads of each family of a suite."""
        families = defaultdict(list)
        for workload in dict.fromkeys(key[0] for key in self.suites[suite]):
            families[self.family[workload]].append(workload)
        return families

    def select(self, suite: str, state: str, workloads: Iterable[str] | None = None) -> list[Cell]:
        """Return the cells of one state and, if they are given, some workloads."""
        cells = (cell for cell in self.suites[suite].values() if cell.state == state)
        return [cell for cell in cells if workloads is None or cell.workload in workloads]

    def of_dtype(self, suite: str, dtype: str) -> list[Cell]:
        """Return the cells of one dtype."""
        return [cell for cell in self.suites[suite].values() if cell.dtype == dtype]

    def line(self, family: str, state: str, threads: int) -> list[Cell]:
        """Return the cells of one pattern of the scaling suite, smallest first."""
        cells = self.suites["scaling"].items()
        chosen = [cell for key, cell in cells if key[2:] == (state, threads) and self.family[cell.workload] == family]
        return sorted(chosen, key=lambda cell: cell.nbytes)


def load(paths: Iterable[Path]) -> Run:
    """Read saved runs, and take each cell's fastest round and largest error.

    Raises
    ------
    ValueError
        If runs are of different machines, versions or numbers of threads, so that their times cannot be compared; if
        there is no cell with both bcast and NumPy.
    """
    run = None
    times: dict[tuple[str, Key], dict[str, float]] = defaultdict(dict)
    errors: dict[tuple[str, Key], dict[str, float]] = defaultdict(dict)
    nbytes = {}
    for path in paths:
        for benchmark in json.loads(path.read_text(encoding="utf-8"))["benchmarks"]:
            info = benchmark["extra_info"]
            name, peer = info["competitor"], info["peer"]
            run = run or Run(info["machine"])
            if info["machine"] != run.machine:
                raise ValueError(f"{path} expected a run of:\n{run.machine}\ngot one of:\n{info['machine']}")
            if peer and "," not in name and run.peers.setdefault(name, peer) != peer:  # named once, however called
                raise ValueError(f"{path} expected {run.peers[name]}, got {peer}")
            run.family[info["workload"]] = info["family"]
            run.innermost[info["workload"]] = info["innermost"]
            key = info["suite"], (info["workload"], info["dtype"], info["state"], info["threads"])
            nbytes[key] = info["bytes"]
            times[key][name] = min(benchmark["stats"]["min"], times[key].get(name, math.inf))
            if (error := info.get("error")) is not None:
                errors[key][name] = max(error, errors[key].get(name, 0.0))
    complete = [key for key in times if times[key].keys() >= {"bcast", "numpy"}]
    if run is None or not complete:
        raise ValueError("the runs expected times of both bcast and numpy, got none")
    order = list(run.family)
    for suite, key in sorted(complete, key=lambda key: order.index(key[1][0])):  # dtypes and states stay as they came
        run.suites[suite][key] = Cell(*key[:3], nbytes[suite, key], times[suite, key], errors[suite, key])
    return run


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
    known = {workload.name: workload for dtype in DTYPES for workload in grid(dtype)}
    known |= {workload.name: workload for workload, _ in random_workloads(SEED)}
    for suite, title in (("grid", "The grid"), ("random", "Random shapes")):
        for name, dtype, *figures in _rows(text, title):
            for state, columns in zip(STATES, (figures[:4], figures[4:]), strict=True):
                if columns[0]:
                    _add(run, suite, known[name], (name, dtype, state, 0), columns, known[name].nbytes(dtype))
    for name, state, threads, *figures in _rows(text, "From 1 KB to the largest that fits"):
        family, _, size = name.rpartition(", ")
        number, unit = size.split()
        nbytes = int(number) << next(shift for shift, each in UNITS if each == unit)
        workload = Workload(name, family, (), (1,))
        _add(run, "scaling", workload, (name, "float32", state, int(threads)), figures, nbytes)
    if not any(run.suites.values()):
        raise ValueError(f"{path} expected a report with tables, got none")
    return run


def _rows(text: str, title: str) -> list[list[str]]:
    """Return the rows of the table under a title, without its head."""
    section = text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    rows = [[cell.strip(" *") for cell in line.split("|")[1:-1]] for line in section.splitlines() if line[:1] == "|"]
    return rows[2:]


def _add(run: Run, suite: str, workload: Workload, key: Key, figures: list[str], nbytes: int) -> None:
    """Add a cell with these figures: GB/s, share of the limit, ratio to NumPy, ratio to the best peer and its name."""
    speed, share, numpy, peer = figures
    own = nbytes / float(speed) / 1e9
    times = {"bcast": own, "numpy": own * float(numpy)}
    if share:
        times[LIMIT] = own * float(share.rstrip("%")) / 100
    if peer:
        ratio, name = peer.replace("*", "").split()
        times[name] = own * float(ratio)
    run.family[key[0]] = workload.group
    run.innermost[key[0]] = innermost(workload) if suite != "scaling" else 0
    run.suites[suite][key] = Cell(*key[:3], nbytes, times)


def mean(ratios: Iterable[float]) -> float:
    """Return the geometric mean."""
    logarithms = [math.log(ratio) for ratio in ratios]
    return math.exp(math.fsum(logarithms) / len(logarithms))


def to_numpy(cell: Cell) -> float:
    """Return the ratio to NumPy."""
    return cell.ratio("numpy")


def to_peer(cell: Cell) -> float:
    """Return the ratio to the best peer, NaN where there is none."""
    return cell.ratio(cell.best_peer or "")


def to_limit(cell: Cell) -> float:
    """Return the share of the limit that is reached, NaN where there is none."""
    return cell.ratio(LIMIT)


def known(ratio: Callable[[Cell], float], cells: Iterable[Cell]) -> list[Cell]:
    """Return the cells that have a ratio."""
    return [cell for cell in cells if not math.isnan(ratio(cell))]
