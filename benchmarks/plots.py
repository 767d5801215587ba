"""The pictures of the report."""

import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from peers import LIMIT
from runs import Cell, Run, known, mean, to_limit, to_numpy, to_peer
from shapes import FLOATS
from workloads import STATES

from bcast._benchmark.table import LOST

# Told apart by colour-blind eyes too.
STATE_COLOURS = {"fresh": "#0072b2", "warm": "#d55e00"}
DTYPE_COLOURS = dict(zip(FLOATS, ("#009e73", "#0072b2", "#d55e00"), strict=True))
Row = tuple[str, str, dict[str, list[Cell]]]  # its family, its name, its cells by what tells their colour
PAGE = 8.6  # inches, with 72 points each: some 830 CSS pixels, the width of README
FONTS = ["DejaVu Sans", "Verdana", "Arial"]
SEQUENCE = ("#08306b", "#2171b5", "#6baed6", "#c6dbef")  # of a scale
COLOURS = {"bcast": "#d55e00", "numpy": "#0072b2", "torch": "#009e73", LIMIT: "#999999"}


@contextmanager
def figure(path: Path | None, rows: int, columns: int, **options) -> Iterator:
    """Give the axes of a new figure, and save it; without a path, leave it open.

    An SVG is written for people who compare versions of it: text as text, and each path in one line.
    """
    import matplotlib as mpl
    from matplotlib import pyplot as plt

    with mpl.rc_context({"svg.hashsalt": "bcast", "svg.fonttype": "none", "font.sans-serif": FONTS, "font.size": 9}):
        drawn, axes = plt.subplots(rows, columns, layout="constrained", squeeze=False, **options)
        yield axes
        if path is None:
            return
        if path.suffix == ".svg":
            text = io.StringIO()
            drawn.savefig(text, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
            path.write_text(compact(text.getvalue()), encoding="utf-8")
        else:
            drawn.savefig(path)
        plt.close(drawn)


def compact(svg: str) -> str:
    """Drop the comments of matplotlib's SVG and the groups around single things; put each element in one line."""
    svg = re.sub(r"<!--.*?-->|<!DOCTYPE.*?>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"\s*\n\s*(?=[-\d.MLQCz\"/])", " ", svg)
    svg = re.sub(r' id="(?:axes|figure|legend|line2d|matplotlib|patch|text|xtick|ytick)[^"]*"', "", svg)
    while svg != (svg := re.sub(r"<g>\s*(<(\w+)[^<]*(?:/>|</\2>))?\s*</g>", r"\1", svg)):
        pass
    return re.sub(r"\n\s*", "\n", svg)


def plot_ratios(run: Run, path: Path | None = None) -> None:
    """Draw the ratios to NumPy and to the best peer in short: of each family of workloads, the mean and the span."""
    rows = [(family, _by_state(run, "grid", each)) for family, each in run.families("grid").items()]
    if run.suites["random"]:
        rows.append(("random shapes", _by_state(run, "random", None)))
    ratios = {"NumPy": to_numpy, "the best peer": to_peer}
    with figure(path, 1, 2, figsize=(PAGE, 1.3 + 0.34 * len(rows)), sharey=True) as (panels,):
        for axes, (name, ratio) in zip(panels, ratios.items(), strict=True):
            for state, colour in STATE_COLOURS.items():
                shift = -0.14 if state == "fresh" else 0.14
                for i, (_, cells) in enumerate(rows):
                    if among := [ratio(cell) for cell in known(ratio, cells[state])]:
                        axes.plot([min(among), max(among)], [i + shift] * 2, color=colour, lw=2.5, alpha=0.4)
                        axes.plot([mean(among)], [i + shift], "o", color=colour, ms=6, mew=0)
                axes.plot([], [], "o-", color=colour, ms=6, mew=0, label=f"{state}: mean, lowest to highest")
            _ratio_axis(axes, digits=(1,), losing=True)
            axes.set_title(f"against {name}", loc="left", weight="bold")
            axes.set_xlabel(f"time of {name} / bcast's time")
        panels[0].set_yticks(range(len(rows)), [family for family, _ in rows])
        panels[0].set_ylim(len(rows) - 0.5, -0.5)
        _legend_above(panels[0], 2)


def plot_detail(run: Run, path: Path | None = None) -> None:
    """Draw all ratios to NumPy and to the best peer: a line for each workload and state, a dot for each dtype."""
    rows = [
        (family, workload, _by_state(run, "grid", [workload]))
        for family, each in run.families("grid").items()
        for workload in each
    ]
    rows += [
        (family, family, _by_state(run, "random", each)) for family, each in sorted(run.families("random").items())
    ]
    _plot(rows, STATE_COLOURS, {"NumPy": to_numpy, "the best peer": to_peer}, path)


def _by_state(run: Run, suite: str, workloads: list[str] | None) -> dict[str, list[Cell]]:
    return {state: run.select(suite, state, workloads) for state in STATES}


def plot_adjoint(run: Run, path: Path | None = None) -> None:
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


def _plot(
    rows: list[Row], colours: dict[str, str], ratios: dict[str, Callable[[Cell], float]], path: Path | None
) -> None:
    height = 1.6 + 0.13 * len(rows) * len(colours)
    with figure(path, 1, len(ratios), figsize=(6 * len(ratios), height), sharey=True) as (panels,):
        for axes, (name, ratio) in zip(panels, ratios.items(), strict=True):
            _dots(axes, rows, colours, ratio)
            axes.set_title(f"bcast against {name} (geometric means)", loc="left", weight="bold", pad=20)
            axes.set_xlabel(f"time of {name} / bcast's time{'' if ratio is to_limit else '; in the red bcast loses'}")
        panels[0].set_yticks(range(len(rows)), [name for _, name, _ in rows])
        panels[0].set_ylim(len(rows) - 0.5, -0.5)


def _dots(axes, rows, colours, ratio) -> None:
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
    _ratio_axis(axes, digits=(1, 2, 5), losing=ratio is not to_limit)
    axes.legend(loc="lower left", bbox_to_anchor=(-0.02, 1), ncols=len(colours), frameon=False)


def _ratio_axis(axes, digits: tuple[int, ...], losing: bool) -> None:
    """Scale the axis of the ratios, with ticks at these digits times powers of ten; in the red bcast loses."""
    from matplotlib.ticker import NullLocator

    axes.set_xscale("log")
    left, right = axes.get_xlim()
    left, right = min(left, 0.5), max(right, 2)
    if losing:
        axes.axvspan(left, LOST, color="#cc0000", alpha=0.08, lw=0, zorder=0.5)
    axes.axvline(1, color="black", lw=1)
    axes.set_xlim(left, right)
    if right / left < 50:
        digits = (1, 2, 5)
    ticks = [digit * 10.0**zeros for zeros in range(-3, 5) for digit in digits]
    axes.set_xticks([tick for tick in ticks if left <= tick <= right])
    axes.xaxis.set_major_formatter("{x:g}x")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(axis="x", color="#dddddd", lw=0.5)
    axes.set_axisbelow(True)
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)


def _legend_above(axes, columns: int) -> None:
    """Put the legend of one of the panels above them all."""
    handles, labels = axes.get_legend_handles_labels()
    axes.figure.legend(handles, labels, loc="outside upper center", ncols=columns, frameon=False)


def plot_lines(table: str, path: Path | None = None) -> None:
    """Draw the first table of `lines.md`: a row for each line of NumPy's, a dot for each length of the last axis."""
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    rows = rows[: next(i for i, row in enumerate(rows) if row[0] == "the line")]
    (_, _, *lengths), *rows = rows
    with figure(path, 1, 1, figsize=(PAGE, 0.6 + 0.24 * len(rows))) as [[axes]]:
        for i, (length, colour) in enumerate(zip(lengths, SEQUENCE, strict=True)):
            times = [float(row[2 + i]) for row in rows]
            axes.plot(times, range(len(rows)), "o", color=colour, markersize=7, label=f"last axis of {length}")
        _ratio_axis(axes, digits=(1, 2, 5), losing=True)
        axes.set_yticks(range(len(rows)), [row[0].strip("`") for row in rows])
        axes.invert_yaxis()
        axes.set_xlabel("time of the line of NumPy / bcast's time")
        _legend_above(axes, len(lengths))


def plot_scaling(run: Run, path: Path | None = None) -> None:
    """Draw speed over size, with one thread and with all; and over threads, where there are more than two numbers."""
    cells = run.suites["scaling"]
    counts = sorted({key[3] for key in cells})
    families = [family for family in run.families("scaling") if run.line(family, "warm", counts[-1])]
    panels = [(_by_size, family) for family in families]
    if len(counts) > 2:
        panels += [(_by_threads, family) for family in families]
    columns = min(len(panels), 3) or 1
    rows = -(-len(panels) // columns) or 1
    with figure(path, rows, columns, figsize=(PAGE, 0.8 + 2.4 * rows), sharey=True) as grid:
        places = list(grid.flat)
        for axes, (draw, family) in zip(places, panels, strict=False):
            draw(run, axes, family, counts)
            axes.set_title(family, loc="left", weight="bold")
            axes.grid(color="#eeeeee", lw=0.5)
            axes.spines[["top", "right"]].set_visible(False)
        for axes in places[len(panels) :]:
            axes.set_axis_off()
        for axes in grid[:, 0]:
            axes.set_ylabel("GB/s written, warm")
        if panels:
            _legend_above(places[0], 4)


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
    axes.set_xlim(2**9.5, 2**32.5)
    axes.set_xlabel("size of the output")


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
