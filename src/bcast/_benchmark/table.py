"""How fast bcast is on this machine: the table that `python -m bcast bench` prints.

The suite in benchmarks/ times far more.
"""

import importlib
import math
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from time import perf_counter, sleep

import bcast
from bcast._benchmark.machine import Load, machine
from bcast._benchmark.peers import COMPETITORS, LIMIT, Competitor, Task, bound, competitors, prepare
from bcast._benchmark.timing import measure
from bcast._benchmark.workloads import STATES, Workload, grid

__all__ = ["LOST", "OWN", "Cell", "head", "render", "table", "version"]

LOST = 0.95  # ratios from here to 1 count as equal: no machine is quiet enough to tell
WARM_UP = 4e-3  # seconds, in which most threads come to rest; there is no time for more
OWN = ("bcast", "numpy", LIMIT)  # not peers
WIDTH = 100  # columns
LOOKING = 0.1  # seconds in which to see whether other processes use the machine, before anything is measured
UNSTEADY = 1.15  # if the fastest rounds of a cell's two halves differ by this ratio, other work has disturbed them

# A small grid: one workload for each way in which the innermost axes can lie.
REPRESENTATIVE = (
    "3 -> 4x3",
    "bias NCHW",
    "bias NHWC",
    "gray -> RGB 1080p",
    "row of 3 x 1e6",
    "row of 1000 x 1e4",
    "column of 1e5 x 100",
    "64,1,64,1 -> 64^4",
    "1,64,1,64 -> 64^4",
    "upsample x2 270x480",
    "ten axes of 2",
    "scalar -> 1e6 bytes",
)
SHORT = ("3 -> 4x3", "gray -> RGB 1080p", "row of 3 x 1e6", "upsample x2 270x480")


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
    steady : bool
        Whether the rounds agree: for each competitor, the fastest rounds of the two halves differ little.
    """

    workload: str
    dtype: str
    state: str
    nbytes: int
    times: Mapping[str, float]
    errors: Mapping[str, float] = field(default_factory=dict)
    steady: bool = True

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


def version(name: str, known: Mapping[str, Competitor] = COMPETITORS) -> str:
    """Return a competitor's name and version; what follows a comma says how it was called."""
    package = name.partition(",")[0]
    module = known[package].modules[0] if package in known else package
    return f"{name} {importlib.import_module(module).__version__.partition('-')[0]}"


def head(names: Iterable[str], threads: int) -> str:
    """Describe what was compared: the machine in one line, the peers in another."""
    return f"{machine(threads)}\npeers: {'; '.join(version(name) for name in names if name not in OWN) or 'none'}"


def render(cells: Iterable[Cell], top: str) -> str:
    """Format cells as a plain-text table of 100 columns under the lines of `top`, with a mark on lost cells."""
    legend = (
        f"NumPy, best peer: its time / bcast's time; below 1 bcast is the slower one, below {LOST} the cell is LOST. "
        "fresh: into a new array; warm: into the same `out` again. Fastest of several rounds, taken by turns; "
        "a ? marks cells whose rounds disagree."
    )
    lines = [f"{'workload':<21} {'dtype':<8} {'state':<5} {'bcast, us':>10} {'GB/s':>6} {'NumPy':>7} {'best peer':>9}"]
    lost = 0
    for cell in cells:
        peer = cell.best_peer
        beside = f" {cell.ratio(peer):9.2f} {peer:<12}" if peer else f" {'-':>9} {'':<12}"
        mark = "LOST" * bool(cell.lost_to) + " ?" * (not cell.steady)
        lost += bool(cell.lost_to)
        lines.append(
            f"{cell.workload:<21} {cell.dtype:<8} {cell.state:<5} {cell.times['bcast'] * 1e6:10.2f}"
            f" {cell.bandwidth / 1e9:6.1f} {cell.ratio('numpy'):7.2f}{beside} {mark}".rstrip()
        )
    text = [line for given in (*top.splitlines(), "", legend) for line in textwrap.wrap(given, WIDTH) or [""]]
    return "\n".join([*text, "", *lines, "", f"{lost} of {len(lines) - 1} cells lost"])


def table(seconds: float = 20.0, short: bool = False, grow: Callable[[str], object] | None = None) -> str:
    """Compare bcast with NumPy and the installed peers on this machine.

    Parameters
    ----------
    seconds : float
        The time for everything, including the import of the peers. Cells that are not reached by then are left out, and
        the table says so.
    short : bool
        Whether to time only a handful of cells, against NumPy only, in at most 5 seconds.
    grow : callable, optional
        Called with a dot for each measured cell; the growing line shows users that they must wait.

    Returns
    -------
    str
        The table, 100 columns wide.
    """
    start = perf_counter()
    threads = bcast.get_num_threads()
    with bound(threads):
        return _table(start, min(seconds, 5.0) if short else seconds, short, threads, grow or str)


def _table(start: float, seconds: float, short: bool, threads: int, grow: Callable[[str], object]) -> str:
    load = Load()
    sleep(min(LOOKING, seconds / 10))
    caveats = [load.caveat()]
    names, missing = _import_peers(start + seconds / 2, short)
    deadline = start + 0.9 * seconds  # the last cell may take longer than planned
    load = Load()
    tasks = list(_selection(SHORT if short else REPRESENTATIVE))
    cells = []
    for i, (workload, dtype, state) in enumerate(tasks):
        begin = perf_counter()
        if begin >= deadline:
            missing.append(f"{len(tasks) - i} cells (no time left)")
            break
        selected = [name for name in competitors(workload, dtype, state) if name in names]
        calls = prepare(Task.of(workload, dtype, state, threads), selected)
        rest = begin + (deadline - begin) / (len(tasks) - i) - perf_counter()
        rounds = measure(calls, rest, WARM_UP)
        times = {name: min(each) for name, each in rounds.items()}
        steady = all(map(_agree, rounds.values()))
        cells.append(Cell(workload.name, dtype, state, workload.nbytes(dtype), times, steady=steady))
        grow(".")
    caveats.append(load.caveat())
    top = head(names, threads)
    if missing:
        top += f"\nmissing: {', '.join(missing)}"
    if any(caveats):
        top += f"\n{caveats[1] or caveats[0]}"
    return render(cells, top)


def _import_peers(deadline: float, short: bool) -> tuple[list[str], list[str]]:
    """Import the installed peers; return the names of all competitors, and of missing peers with the reasons."""
    names, missing = ["bcast", "numpy"], []
    for name, competitor in COMPETITORS.items():
        if name in OWN or short or not competitor.installed():
            continue
        if perf_counter() > deadline:
            missing.append(f"{name} (no time left to import it)")
            continue
        try:
            for module in competitor.modules:
                importlib.import_module(module)
        except Exception as error:  # a broken installation raises anything
            missing.append(f"{name} ({' '.join(str(error).split())[:60]})")
        else:
            names.append(name)
    return names, missing


def _agree(rounds: list[float]) -> bool:
    """Return whether the fastest rounds of the two halves are about equal."""
    half = len(rounds) // 2
    return half == 0 or max(min(rounds[:half]), min(rounds[half:])) <= UNSTEADY * min(rounds)


def _selection(names: tuple[str, ...]) -> Iterable[tuple[Workload, str, str]]:
    for name in names:
        for dtype in ("uint8", "float32"):
            for workload in grid(dtype):
                if workload.name == name:
                    yield from ((workload, dtype, state) for state in STATES)
