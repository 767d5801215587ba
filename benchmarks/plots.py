"""The pictures of the report."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from runs import Run, known, mean, to_limit, to_numpy, to_peer

from bcast._benchmark.peers import LIMIT
from bcast._benchmark.table import LOST, Cell
from bcast._benchmark.workloads import FLOATS, STATES

# Told apart by colour-blind eyes too.
STATE_COLOURS = {"fresh": "#0072b2", "warm": "#d55e00"}
DTYPE_COLOURS = dict(zip(FLOATS, ("#009e73", "#0072b2", "#d55e00"), strict=True))
Row = tuple[str, str, dict[str, list[Cell]]]  # its family, its name, its cells by what tells their colour
COLOURS = {"bcast": "#d55e00", "numpy": "#0072b2", "torch": "#009e73", LIMIT: "#999999"}


@contextmanager
def figure(path: Path, rows: int, columns: int, **options) -> Iterator:
    """Give the axes of a new figure, and save it."""
    import matplotlib as mpl
    from matplotlib import pyplot as plt

    with mpl.rc_context({"svg.hashsalt": "bcast", "font.size": 9}):
        drawn, axes = plt.subplots(rows, columns, layout="constrained", squeeze=False, **options)
        yield axes
        drawn.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
        plt.close(drawn)


def plot_ratios(run: Run, path: Path) -> None:
    """Draw the ratios to NumPy and to the best peer: a line for each workload and state, a dot for each dtype."""
    rows = [
        (family, workload, _by_state(run, "grid", [workload]))
        for family, each in run.families("grid").items()
        for workload in each
    ]
    rows += [
        (family, family, _by_state(run, "random", each)) for family, each in sorted(run.families("random").items())
    ]
    _plot(rows, STATE_COLOURS, {"NumPy": to_numpy, "the best peer": to_peer}, path)


def _by_state(run: Run, suite: str, workloads: list[str]) -> dict[str, list[Cell]]:
    return {state: run.select(suite, state, workloads) for state in STATES}


def plot_adjoint(run: Run, path: Path) -> None:
    """Draw the ratios of sums, to the limit too: a line for each pattern and dtype, a dot for each size."""
    rows = [
        (
            family,
            family,
            {dtype: [cell for cell in run.of_dtype("adjoint", dtype) if cell.workload in each] for dtype in FLOATS},
        )
        for family, each in run.families("adjoint").items()
    ]
    _plot(rows, DTYPE_COLOURS, {"NumPy": to_numpy, "the best peer": to_peer, "the limit": to_limit}, path)


def _plot(rows: list[Row], colours: dict[str, str], ratios: dict[str, Callable[[Cell], float]], path: Path) -> None:
    height = 1.6 + 0.13 * len(rows) * len(colours)
    with figure(path, 1, len(ratios), figsize=(6 * len(ratios), height), sharey=True) as (panels,):
        for axes, (name, ratio) in zip(panels, ratios.items(), strict=True):
            _dots(axes, rows, colours, ratio)
            axes.set_title(f"bcast against {name} (geometric means)", loc="left", weight="bold", pad=20)
            axes.set_xlabel(f"time of {name} / bcast's time{'' if ratio is to_limit else '; in the red bcast loses'}")
        panels[0].set_yticks(range(len(rows)), [name for _, name, _ in rows])
        panels[0].set_ylim(len(rows) - 0.5, -0.5)


def _dots(axes, rows, colours, ratio) -> None:
    from matplotlib.ticker import NullLocator

    families = list(dict.fromkeys(row[0] for row in rows))
    everything = {kind: [] for kind in colours}
    shift = 0.68 / len(colours)
    for i, (family, _, cells) in enumerate(rows):
        if families.index(family) % 2 == 0:
            axes.axhspan(i - 0.5, i + 0.5, color="#f2f2f2", lw=0, zorder=0)
        for place, (kind, colour) in enumerate(colours.items()):
            ratios = [ratio(cell) for cell in known(ratio, cells[kind])]
            everything[kind] += ratios
            line = [i + shift * (place - (len(colours) - 1) / 2)] * len(ratios)
            axes.plot(ratios, line, "o-", color=colour, ms=3.6, lw=1, alpha=0.75, mew=0)
    for kind, ratios in everything.items():
        if ratios:
            label = f"{kind} ({mean(ratios):.3g})"
            axes.plot([], [], "o-", color=colours[kind], ms=3.6, lw=1, mew=0, label=label)
    axes.set_xscale("log")
    left, right = axes.get_xlim()
    left, right = min(left, 0.5), max(right, 2)
    if ratio is not to_limit:
        axes.axvspan(left, LOST, color="#cc0000", alpha=0.08, lw=0, zorder=0.5)
    axes.axvline(1, color="black", lw=1)
    axes.set_xlim(left, right)
    ticks = [digit * 10.0**zeros for zeros in range(-3, 5) for digit in (1, 2, 5)]
    axes.set_xticks([tick for tick in ticks if left <= tick <= right])
    axes.xaxis.set_major_formatter("{x:g}x")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(axis="x", color="#dddddd", lw=0.5)
    axes.set_axisbelow(True)
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.legend(loc="lower left", bbox_to_anchor=(-0.02, 1), ncols=len(colours), frameon=False)


def plot_scaling(run: Run, path: Path) -> None:
    """Draw speed over size, with one thread and with all, and below it speed over threads."""
    cells = run.suites["scaling"]
    counts = sorted({key[3] for key in cells})
    families = [family for family in run.families("scaling") if run.line(family, "warm", counts[-1])]
    with figure(path, 2, max(len(families), 1), figsize=(2.6 * max(len(families), 2), 6), sharey=True) as (
        above,
        below,
    ):
        for axes, family in zip(above, families, strict=False):
            _by_size(run, axes, family, counts)
        for axes, family in zip(below, families, strict=False):
            _by_threads(run, axes, family, counts)
        for axes in (above[0], below[0]):
            axes.set_ylabel("GB/s written, warm")
        if families:
            handles, labels = above[0].get_legend_handles_labels()
            above[0].figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)


def _by_size(run: Run, axes, family, counts) -> None:
    for threads, style in dict.fromkeys([(counts[-1], "-"), (counts[0], ":")]):
        if style == ":" and len(counts) == 1:
            continue
        line = run.line(family, "warm", threads)
        for name, colour in COLOURS.items():
            if name == "numpy" and style == ":":
                continue  # it has one thread in any case
            points = [(cell.nbytes, cell.nbytes / cell.times[name] / 1e9) for cell in line if name in cell.times]
            if points:
                label = name if name == "numpy" else f"{name}, {threads} thread{'s' * (threads > 1)}"
                axes.plot(*zip(*points, strict=True), style, marker="o", ms=2.5, lw=1.2, color=colour, label=label)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    ticks = {10: "1 KB", 20: "1 MB", 30: "1 GB"}
    axes.set_xticks([2.0**power for power in ticks], ticks.values())
    axes.set_title(family, loc="left", weight="bold")
    axes.set_xlabel("size of the output")
    axes.grid(color="#eeeeee", lw=0.5)
    axes.spines[["top", "right"]].set_visible(False)


def _by_threads(run: Run, axes, family, counts) -> None:
    """Draw the largest size that each number of threads has done."""
    lines = {threads: run.line(family, "warm", threads) for threads in counts}
    largest = min(line[-1].nbytes for line in lines.values())
    for name, colour in COLOURS.items():
        points = [
            (threads, cell.nbytes / cell.times[name] / 1e9)
            for threads, line in lines.items()
            for cell in line
            if cell.nbytes == largest and name in cell.times
        ]
        if points:
            axes.plot(*zip(*points, strict=True), "-", marker="o", ms=3, lw=1.2, color=colour)
    axes.set_xticks(counts)
    axes.set_xlabel(f"threads, at {largest / 2**20:,.4g} MB")
    axes.grid(color="#eeeeee", lw=0.5)
    axes.spines[["top", "right"]].set_visible(False)
