"""Turn saved runs of the suite into a Markdown table, a plot and a summary.

    python benchmarks/report.py run.json [more.json] --markdown OUT.md --plot OUT.svg --summary SUMMARY.md

Of several runs on one machine, each cell's fastest round counts.
"""

import argparse
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bcast._bench import LOST, Cell
from bcast._peers import LIMIT, STATES

LEGEND = (
    "*NumPy*, *best peer*: its time / bcast's time; below 1 bcast is the slower one, and below "
    f"{LOST} the cell is lost and set in bold. *fresh*: into a new array; *warm*: into the same `out` again."
)
HEADS = ("GB/s", "of bound", "NumPy", "best peer")
COLOURS = {"fresh": "#0072b2", "warm": "#d55e00"}  # told apart by colour-blind eyes too


@dataclass
class Run:
    """What one machine measured.

    Attributes
    ----------
    machine : str
        Versions and processor.
    cells : dict
        Cell by (workload, dtype, state), in the order of the grid.
    family : dict
        Workload to the family it belongs to.
    innermost : dict
        Workload to the number of repetitions along its innermost repeated axis.
    """

    machine: str
    cells: dict[tuple[str, str, str], Cell] = field(default_factory=dict)
    family: dict[str, str] = field(default_factory=dict)
    innermost: dict[str, int] = field(default_factory=dict)

    def select(self, state: str, workloads: Iterable[str]) -> list[Cell]:
        """Return the cells of one state and some workloads."""
        return [cell for cell in self.cells.values() if cell.state == state and cell.workload in workloads]


def load(paths: Iterable[Path]) -> Run:
    """Read saved runs.

    Raises
    ------
    ValueError
        If runs are of different machines or versions, so that their times cannot be compared; if there is no cell with
        both bcast and NumPy.
    """
    run = None
    times: dict[tuple[str, str, str], dict[str, float]] = defaultdict(dict)
    nbytes = {}
    for path in paths:
        for benchmark in json.loads(path.read_text(encoding="utf-8"))["benchmarks"]:
            info = benchmark["extra_info"]
            run = run or Run(info["machine"])
            if info["machine"] != run.machine:
                raise ValueError(f"{path} expected a run of:\n{run.machine}\ngot one of:\n{info['machine']}")
            run.family[info["workload"]] = info["family"]
            run.innermost[info["workload"]] = info["innermost"]
            key = info["workload"], info["dtype"], info["state"]
            nbytes[key] = info["bytes"]
            times[key][info["competitor"]] = min(
                benchmark["stats"]["min"], times[key].get(info["competitor"], math.inf)
            )
    complete = [key for key in times if times[key].keys() >= {"bcast", "numpy"}]
    if run is None or not complete:
        raise ValueError("the runs expected times of both bcast and numpy, got none")
    order = list(run.family)
    for key in sorted(complete, key=lambda key: order.index(key[0])):  # dtypes and states stay as they came
        run.cells[key] = Cell(*key, nbytes[key], times[key])
    return run


def mean(ratios: Iterable[float]) -> float:
    """Return the geometric mean."""
    logarithms = [math.log(ratio) for ratio in ratios]
    return math.exp(math.fsum(logarithms) / len(logarithms))


def show(ratio: float) -> str:
    """Write a ratio with two or three digits, in bold if it is a lost one."""
    text = f"{ratio:.0f}" if ratio >= 20 else f"{ratio:.1f}" if ratio >= 2 else f"{ratio:.2f}"
    return f"**{text}**" if ratio < LOST else text


def table(heads: Iterable[str], rows: Iterable[Iterable[str]], text_columns: int) -> Iterator[str]:
    """Yield the lines of a table whose first columns are text and the others figures."""
    heads = list(heads)
    rules = ["---"] * text_columns + ["--:"] * (len(heads) - text_columns)
    for row in (heads, rules, *rows):
        yield f"| {' | '.join(row)} |"


def figures(cell: Cell | None) -> list[str]:
    """Write the columns of one cell, under `HEADS`."""
    if cell is None:
        return [""] * len(HEADS)
    bound, peer = cell.ratio(LIMIT), cell.best_peer
    return [
        f"{cell.bandwidth / 1e9:.3g}",
        "" if math.isnan(bound) else f"{bound:.0%}",
        show(cell.ratio("numpy")),
        f"{show(cell.ratio(peer))} {peer}" if peer else "",
    ]


def totals(run: Run) -> Iterator[str]:
    """Yield the lines that sum the ratios to NumPy up."""
    few = [workload for workload, times in run.innermost.items() if 2 <= times <= 4]
    for state in STATES:
        for subset, workloads in (("all", run.family), ("innermost repeated axis of 2 to 4", few)):
            if cells := run.select(state, workloads):
                worst = min(cells, key=lambda cell: cell.ratio("numpy"))
                yield (
                    f"- {state}, {subset}: geometric mean {show(mean(cell.ratio('numpy') for cell in cells))} "
                    f"of {len(cells)} cells, worst {show(worst.ratio('numpy'))} ({worst.workload}, {worst.dtype})"
                )


def losses(run: Run) -> Iterator[str]:
    """Yield a list of the cells lost to NumPy, then of those lost to a peer."""
    lost: dict[bool, list[str]] = {True: [], False: []}
    for cell in run.cells.values():
        for name in cell.lost_to:
            where = f"{cell.workload}, {cell.dtype}, {cell.state}"
            lost[name == "numpy"].append(f"- {where}: {show(cell.ratio(name))} {name}")
    for title, lines in (("NumPy", lost[True]), ("the best peer", lost[False])):
        yield from ("", f"## Lost to {title}: {len(lines)} of {len(run.cells)} cells", "", *(lines or ["None."]))


def markdown(run: Run) -> str:
    """Write the whole table; in short what it says above, and beneath it every lost cell."""
    rows = []
    for pair in dict.fromkeys((workload, dtype) for workload, dtype, _ in run.cells):
        fresh, warm = (figures(run.cells.get((*pair, state))) for state in STATES)
        rows.append([*pair, *fresh, *warm])
    heads = ["workload", "dtype", *(f"{state}: {head}" for state in STATES for head in HEADS)]
    lines = [
        "# bcast against NumPy and its peers",
        "",
        *(f"    {line}" for line in run.machine.splitlines()),
        "",
        f"{LEGEND} *of bound*: the time of a memset of as many bytes of warm memory / bcast's time.",
        "",
        "Against NumPy:",
        "",
        *totals(run),
        "",
        *table(heads, rows, 2),
        *losses(run),
    ]
    return "\n".join(lines) + "\n"


def span(ratios: list[float]) -> str:
    """Write the lowest and the highest ratio."""
    low, high = show(min(ratios)), show(max(ratios))
    return low if low == high else f"{low} to {high}"


def summary(run: Run) -> str:
    """Write a short table: a row for each family, the range of ratios over its workloads and dtypes."""
    rows = []
    for family in dict.fromkeys(run.family.values()):
        row = [family]
        for state in STATES:
            cells = run.select(state, [workload for workload in run.family if run.family[workload] == family])
            ratios = [cell.ratio("numpy") for cell in cells]
            rivals = [(cell.ratio(cell.best_peer), cell.best_peer) for cell in cells if cell.best_peer]
            row.append(span(ratios) if ratios else "")
            row.append(f"{span([ratio for ratio, _ in rivals])} ({min(rivals)[1]})" if rivals else "")
        rows.append(row)
    heads = ["workload", *(f"{state}: {head}" for state in STATES for head in HEADS[2:])]
    lines = [
        *table(heads, rows, 1),
        "",
        f"{LEGEND} Lowest and highest of all sizes and dtypes; in brackets the peer that is the nearest, or the "
        "farthest ahead.",
        "",
        "<br>".join(run.machine.splitlines()),
    ]
    return "\n".join(lines) + "\n"


def plot(run: Run, path: Path) -> None:
    """Draw the ratios to NumPy: a line of dots for each workload and state, a dot for each dtype."""
    import matplotlib as mpl
    from matplotlib import pyplot as plt
    from matplotlib.ticker import NullLocator

    mpl.rcParams |= {"svg.hashsalt": "bcast", "font.size": 9}
    workloads = list(run.family)
    figure, axes = plt.subplots(figsize=(8.5, 1.6 + 0.26 * len(workloads)), layout="constrained")
    families = list(dict.fromkeys(run.family.values()))
    for i, workload in enumerate(workloads):
        if families.index(run.family[workload]) % 2 == 0:
            axes.axhspan(i - 0.5, i + 0.5, color="#f2f2f2", lw=0, zorder=0)
        for state, shift in zip(STATES, (-0.17, 0.17), strict=True):
            ratios = [cell.ratio("numpy") for cell in run.select(state, [workload])]
            if ratios:
                line = [i + shift] * len(ratios)
                axes.plot(ratios, line, "o-", color=COLOURS[state], ms=3.6, lw=1, alpha=0.75, mew=0)
    for state in STATES:
        if cells := run.select(state, workloads):
            middle = mean(cell.ratio("numpy") for cell in cells)
            label = f"{state} (geometric mean {middle:.3g})"
            axes.plot([], [], "o-", color=COLOURS[state], ms=3.6, lw=1, mew=0, label=label)
    axes.set_xscale("log")
    left, right = axes.get_xlim()
    left = min(left, 0.5)
    axes.axvspan(left, LOST, color="#cc0000", alpha=0.08, lw=0, zorder=0.5)
    axes.axvline(1, color="black", lw=1)
    axes.set_xlim(left, right)
    ticks = [digit * 10.0**zeros for zeros in range(-3, 5) for digit in (1, 2, 5)]
    axes.set_xticks([tick for tick in ticks if left <= tick <= right])
    axes.xaxis.set_major_formatter("{x:g}x")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(axis="x", color="#dddddd", lw=0.5)
    axes.set_axisbelow(True)
    axes.set_yticks(range(len(workloads)), workloads)
    axes.set_ylim(len(workloads) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.set_xlabel(
        "NumPy's time / bcast's time: right of the line bcast is faster, in the red it loses; a dot for each dtype"
    )
    axes.set_title("bcast against NumPy", loc="left", weight="bold")
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=len(STATES), frameon=False)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("runs", nargs="+", type=Path, help="files written by --benchmark-json, of one machine")
    parser.add_argument("--markdown", type=Path, help="where the whole table goes")
    parser.add_argument("--plot", type=Path, help="where the picture goes: .svg, .png, ...")
    parser.add_argument("--summary", type=Path, help="where the short table goes")
    options = parser.parse_args(arguments)
    try:
        run = load(options.runs)
    except ValueError as error:
        parser.error(str(error))
    if options.markdown:
        options.markdown.write_text(markdown(run), encoding="utf-8")
    if options.summary:
        options.summary.write_text(summary(run), encoding="utf-8")
    if options.plot:
        plot(run, options.plot)
    print(f"{len(run.cells)} cells", *totals(run), sep="\n")


if __name__ == "__main__":
    main()
