"""The pictures of the report."""

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bcast._benchmark.table import LOST
from benchmarks.copies import STATES
from benchmarks.harness import Measured, mean
from benchmarks.peers import LIMIT
from benchmarks.runs import Run, known, of_state, to_numpy, to_peer

__all__ = ["plot_detail", "plot_lines", "plot_ratios", "plot_scaling"]

# Told apart by colour-blind eyes too.
STATE_COLOURS = {"fresh": "#0072b2", "warm": "#d55e00"}
RIVALS = {"NumPy": to_numpy, "the best peer": to_peer}
PAGE = 8.6  # inches, with 72 points each: some 830 CSS pixels, the width of README
FONTS = ["DejaVu Sans", "Verdana", "Arial"]
SEQUENCE = ("#08306b", "#2171b5", "#6baed6", "#c6dbef")  # of a scale
COLOURS = {"bcast": "#d55e00", "numpy": "#0072b2", "torch": "#009e73", LIMIT: "#999999"}


@contextmanager
def figure(path: Path | None, rows: int, columns: int, **options: Any) -> Iterator[Any]:
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


def by_state(cells: Sequence[Measured]) -> dict[str, list[Measured]]:
    """Return the cells of each state."""
    return {state: of_state(cells, state) for state in STATES}


def plot_ratios(run: Run, path: Path | None = None) -> None:
    """Draw the ratios to NumPy and to the best peer in short: of each group of workloads, the mean and the span."""
    rows = [(group, by_state(cells)) for group, cells in run.groups("grid").items()]
    if cells := run.cells("random"):
        rows.append(("random shapes", by_state(cells)))

    with figure(path, 1, 2, figsize=(PAGE, 1.3 + 0.34 * len(rows)), sharey=True) as (panels,):
        for axes, (name, ratio) in zip(panels, RIVALS.items(), strict=True):
            for state, colour in STATE_COLOURS.items():
                shift = -0.14 if state == "fresh" else 0.14
                for i, (_, cells_of) in enumerate(rows):
                    if among := [ratio(cell) for cell in known(ratio, cells_of[state])]:
                        axes.plot([min(among), max(among)], [i + shift] * 2, color=colour, lw=2.5, alpha=0.4)
                        axes.plot([mean(among)], [i + shift], "o", color=colour, ms=6, mew=0)
                axes.plot([], [], "o-", color=colour, ms=6, mew=0, label=f"{state}: mean and range")
            scale_ratios(axes, digits=(1,))
            axes.set_title(f"against {name}", loc="left", weight="bold")
            axes.set_xlabel(f"speedup over {name}")
        panels[0].set_yticks(range(len(rows)), [group for group, _ in rows])
        panels[0].set_ylim(len(rows) - 0.5, -0.5)
        legend_above(panels[0], 2)


def plot_detail(run: Run, path: Path | None = None) -> None:
    """Draw all ratios to NumPy and to the best peer: a line for each workload and state, a dot for each dtype."""
    rows = [
        (group, name, by_state([cell for cell in cells if cell.name == name]))
        for group, cells in run.groups("grid").items()
        for name in dict.fromkeys(cell.name for cell in cells)
    ]
    rows += [(group, group, by_state(cells)) for group, cells in sorted(run.groups("random").items())]

    height = 1.6 + 0.13 * len(rows) * len(STATES)
    with figure(path, 1, len(RIVALS), figsize=(6 * len(RIVALS), height), sharey=True) as (panels,):
        for axes, name in zip(panels, RIVALS, strict=True):
            draw_dots(axes, rows, name)
            axes.set_title(f"bcast against {name} (geometric means)", loc="left", weight="bold", pad=20)
            axes.set_xlabel(f"speedup over {name}; bcast is slower in the red area")
        panels[0].set_yticks(range(len(rows)), [name for _, name, _ in rows])
        panels[0].set_ylim(len(rows) - 0.5, -0.5)


def draw_dots(axes: Any, rows: list[tuple[str, str, dict[str, list[Measured]]]], rival: str) -> None:
    """Draw a line of dots for each row and state; a row is its group, its name, and its cells by state."""
    groups = list(dict.fromkeys(group for group, _, _ in rows))
    ratio = RIVALS[rival]
    everything: dict[str, list[float]] = {state: [] for state in STATES}
    for i, (group, _, cells) in enumerate(rows):
        if groups.index(group) % 2 == 0:
            axes.axhspan(i - 0.5, i + 0.5, color="#f2f2f2", lw=0, zorder=0)
        for state, colour in STATE_COLOURS.items():
            ratios = [ratio(cell) for cell in known(ratio, cells[state])]
            everything[state] += ratios
            line = [i + (-0.17 if state == "fresh" else 0.17)] * len(ratios)
            axes.plot(ratios, line, "o-", color=colour, ms=3.6, lw=1, alpha=0.75, mew=0)
    for state, ratios in everything.items():
        if ratios:
            label = f"{state} ({mean(ratios):.3g})"
            axes.plot([], [], "o-", color=STATE_COLOURS[state], ms=3.6, lw=1, mew=0, label=label)
    scale_ratios(axes, digits=(1, 2, 5))
    axes.legend(loc="lower left", bbox_to_anchor=(-0.02, 1), ncols=len(STATES), frameon=False)


def scale_ratios(axes: Any, digits: tuple[int, ...]) -> None:
    """Scale the axis of the ratios, with ticks at these digits times powers of ten; in the red bcast loses."""
    from matplotlib.ticker import NullLocator

    axes.set_xscale("log")
    left, right = axes.get_xlim()
    left, right = min(left, 0.5), max(right, 2)
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


def legend_above(axes: Any, columns: int) -> None:
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
        scale_ratios(axes, digits=(1, 2, 5))
        axes.set_yticks(range(len(rows)), [row[0].strip("`") for row in rows])
        axes.invert_yaxis()
        axes.set_xlabel("speedup over NumPy")
        legend_above(axes, len(lengths))


def plot_scaling(run: Run, path: Path | None = None) -> None:
    """Draw speed over size, with one thread and with all: a panel for each pattern."""
    counts = sorted({cell.threads for cell in run.cells("scaling")})
    patterns = [pattern for pattern in run.groups("scaling") if run.line(pattern, "warm", counts[-1])]
    columns = min(len(patterns), 3) or 1
    rows = -(-len(patterns) // columns) or 1

    with figure(path, rows, columns, figsize=(PAGE, 0.8 + 2.4 * rows), sharey=True) as grid:
        places = list(grid.flat)
        for axes, pattern in zip(places, patterns, strict=False):
            draw_by_size(run, axes, pattern, counts)
            axes.set_title(pattern, loc="left", weight="bold")
            axes.grid(color="#eeeeee", lw=0.5)
            axes.spines[["top", "right"]].set_visible(False)
        for axes in places[len(patterns) :]:
            axes.set_axis_off()
        for axes in grid[:, 0]:
            axes.set_ylabel("GB/s written (warm)")
        if patterns:
            legend_above(places[0], 4)


def draw_by_size(run: Run, axes: Any, pattern: str, counts: list[int]) -> None:
    """Draw a line for each library on all threads, and a dotted one on one thread."""
    for threads, style in {counts[0]: ":", counts[-1]: "-"}.items():
        line = run.line(pattern, "warm", threads)
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
    axes.set_xlabel("output size")
