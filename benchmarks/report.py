"""Turn saved runs of the suites into Markdown tables and plots.

    python benchmarks/report.py RUN.json ... --markdown ALL.md --summary TABLE.md --plot RATIOS.svg --scaling S.svg

Of several runs on one machine, each cell's fastest round counts.
"""

import argparse
import math
from collections.abc import Iterable, Iterator
from pathlib import Path

from plots import plot_ratios, plot_scaling
from runs import Run, known, load, mean, to_limit, to_numpy, to_peer

from bcast._bench import LOST, Cell
from bcast._workloads import STATES

LEGEND = (
    "*NumPy*, *best peer*: its time / bcast's time; below 1 bcast is the slower one, and below "
    f"{LOST} the cell is lost and set in bold. *limit*: the time of the fastest fill of as many bytes of warm memory / "
    "bcast's time, fresh or warm. *fresh*: into a new array; *warm*: into the same `out` again."
)
HEADS = ("GB/s", "limit", "NumPy", "best peer")
FLAT = 1 << 26  # bytes from which on a byte should cost the same
RATIOS = {"NumPy": to_numpy, "best peer": to_peer, "limit": to_limit}


def show(ratio: float) -> str:
    """Write a ratio with two or three digits, in bold if it is a lost one."""
    text = f"{ratio:.0f}" if ratio >= 20 else f"{ratio:.1f}" if ratio >= 2 else f"{ratio:.2f}"
    return f"**{text}**" if ratio < LOST else text


def percent(share: float) -> str:
    """Write a share of the limit."""
    return "" if math.isnan(share) else f"{share:.0%}"


def table(heads: Iterable[str], rows: Iterable[Iterable[str]], text_columns: int) -> Iterator[str]:
    """Yield the lines of a table whose first columns are text and the others figures."""
    heads = list(heads)
    rules = ["---"] * text_columns + ["--:"] * (len(heads) - text_columns)
    for row in (heads, rules, *rows):
        yield f"| {' | '.join(row)} |"


def rival(cell: Cell) -> str:
    """Write the ratio to the best peer, and who that is."""
    return f"{show(to_peer(cell))} {cell.best_peer}" if cell.best_peer else ""


def figures(cell: Cell | None) -> list[str]:
    """Write the columns of one cell, under `HEADS`."""
    if cell is None:
        return [""] * len(HEADS)
    return [f"{cell.bandwidth / 1e9:.3g}", percent(to_limit(cell)), show(to_numpy(cell)), rival(cell)]


def subsets(run: Run) -> Iterator[tuple[str, list[Cell]]]:
    """Yield the name and the cells of what is summed up."""
    few = [workload for workload, times in run.innermost.items() if 2 <= times <= 4]
    for state in STATES:
        yield f"grid, {state}", run.select("grid", state)
        yield f"grid, {state}, innermost repeated axis of 2 to 4", run.select("grid", state, few)
        yield f"random shapes, {state}", run.select("random", state)


def totals(run: Run) -> Iterator[str]:
    """Yield the lines of a table of geometric means and worst cells."""
    rows = []
    for name, cells in subsets(run):
        row = [name, str(len(cells))]
        for head, ratio in RATIOS.items():
            write = percent if head == "limit" else show
            if among := known(ratio, cells):
                worst = min(among, key=ratio)
                row += [write(mean(map(ratio, among))), f"{write(ratio(worst))} ({worst.workload}, {worst.dtype})"]
            else:
                row += ["", ""]
        if cells:
            rows.append(row)
    heads = ["cells", "number", *(text for head in RATIOS for text in (f"{head}: mean", "worst"))]
    yield from table(heads, rows, 1)


def losses(run: Run) -> Iterator[str]:
    """Yield a list of the cells lost to NumPy, then of those lost to a peer."""
    lost: dict[bool, list[str]] = {True: [], False: []}
    cells = [*run.suites["grid"].values(), *run.suites["random"].values()]
    for cell in cells:
        for name in cell.lost_to:
            where = f"{cell.workload}, {cell.dtype}, {cell.state}"
            lost[name == "numpy"].append(f"- {where}: {show(cell.ratio(name))} {name}")
    for title, lines in (("NumPy", lost[True]), ("the best peer", lost[False])):
        yield from ("", f"## Lost to {title}: {len(lines)} of {len(cells)} cells", "", *(lines or ["None."]))


def cells_of(run: Run, suite: str, title: str) -> Iterator[str]:
    """Yield the table of a suite, fresh and warm side by side."""
    rows = []
    for first in dict.fromkeys((workload, dtype, threads) for workload, dtype, _, threads in run.suites[suite]):
        workload, dtype, threads = first
        cells = (run.suites[suite].get((workload, dtype, state, threads)) for state in STATES)
        rows.append([workload, dtype, *(text for cell in cells for text in figures(cell))])
    if rows:
        heads = ["workload", "dtype", *(f"{state}: {head}" for state in STATES for head in HEADS)]
        yield from ("", f"## {title}", "", *table(heads, rows, 2))


def scaling(run: Run) -> Iterator[str]:
    """Yield a table of the sizes and the numbers of threads, and what they say together."""
    cells = run.suites["scaling"]
    if not cells:
        return
    yield from ("", "## From 1 KB to the largest that fits", "")
    rows = [[cell.workload, cell.state, str(key[3]), *figures(cell)] for key, cell in cells.items()]
    yield from table(["workload", "state", "threads", *HEADS], rows, 2)
    yield ""
    lines = dict.fromkeys((run.family[key[0]], *key[2:]) for key in cells)
    for family, state, threads in lines:
        costs = [1 / cell.bandwidth for cell in run.line(family, state, threads) if cell.nbytes >= FLAT]
        if len(costs) > 1:
            spread = f"{max(costs) / min(costs):.2f} of the cheapest"
            yield f"- {family}, {state}, threads: {threads}: from 64 MB on the dearest byte costs {spread}"
    for _, state, threads in (line for line in lines if line[0] == "rank 12"):
        few = {cell.nbytes: cell.times["bcast"] for cell in run.line("rank 3", state, threads)}
        many = {cell.nbytes: cell.times["bcast"] for cell in run.line("rank 12", state, threads)}
        if sizes := few.keys() & many.keys():
            dearer = mean(many[size] / few[size] for size in sizes)
            yield f"- rank 12, {state}, threads: {threads}: takes {dearer:.2f} of the time of rank 3, geometric mean"


def uses(run: Run) -> Iterator[str]:
    """Yield the table of results that are used."""
    if cells := run.suites["use"].values():
        rows = [
            [cell.workload, cell.state, f"{cell.times['bcast'] * 1e3:.3g}", show(to_numpy(cell)), rival(cell)]
            for cell in cells
        ]
        yield from (
            "",
            "## Results that are used",
            "",
            "*kept*: in a loop, until the next one is there; *read*: reduced by NumPy's `max` as soon as it is "
            "written, the time is that of both.",
            "",
            *table(["workload", "use", "bcast, ms", *HEADS[2:]], rows, 2),
        )


def markdown(run: Run) -> str:
    """Write everything: in short what it says above, then all cells, lost ones listed."""
    lines = [
        "# bcast against NumPy and its peers",
        "",
        *(f"    {line}" for line in run.head),
        "",
        LEGEND,
        "",
        *totals(run),
        *losses(run),
        *cells_of(run, "grid", "The grid"),
        *cells_of(run, "random", "Random shapes"),
        *scaling(run),
        *uses(run),
    ]
    return "\n".join(lines) + "\n"


def span(texts: list[str]) -> str:
    """Write the lowest and the highest figure."""
    return texts[0] if texts[0] == texts[-1] else f"{texts[0]} to {texts[-1]}"


def spans(cells: list[Cell]) -> list[str]:
    """Write the span of each ratio; the peer that is the nearest, or the farthest ahead, in brackets."""
    row = []
    for head, ratio in RATIOS.items():
        among = sorted(known(ratio, cells), key=ratio)
        text = span([(percent if head == "limit" else show)(ratio(cell)) for cell in among]) if among else ""
        row.append(f"{text} ({among[0].best_peer})" if among and head == "best peer" else text)
    return row


def summary(run: Run) -> str:
    """Write a short table: a row for each family, the range of ratios over its workloads and dtypes."""
    rows = []
    for family, workloads in run.families("grid").items():
        rows.append([family, *(text for state in STATES for text in spans(run.select("grid", state, workloads)))])
    if run.suites["random"]:
        rows.append(["random shapes", *(text for state in STATES for text in spans(run.select("random", state)))])
    means = []
    for state in STATES:
        cells = [*run.select("grid", state), *run.select("random", state)]
        for head, ratio in RATIOS.items():
            among = known(ratio, cells)
            means.append((percent if head == "limit" else show)(mean(map(ratio, among))) if among else "")
    heads = ["workload", *(f"{state}: {head}" for state in STATES for head in RATIOS)]
    lines = [
        *table(heads, [*rows, ["geometric mean of all", *means]], 1),
        "",
        f"{LEGEND} Lowest and highest of all sizes and dtypes; in brackets the peer that is the nearest, or the "
        "farthest ahead.",
        "",
        "<br>".join(run.head),
    ]
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("runs", nargs="+", type=Path, help="files written by --benchmark-json, of one machine")
    parser.add_argument("--markdown", type=Path, help="where all tables go")
    parser.add_argument("--summary", type=Path, help="where the short table goes")
    parser.add_argument("--plot", type=Path, help="where the picture of the ratios goes: .svg, .png, ...")
    parser.add_argument("--scaling", type=Path, help="where the picture of sizes and threads goes")
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
        plot_ratios(run, options.plot)
    if options.scaling:
        plot_scaling(run, options.scaling)
    print(f"{sum(map(len, run.suites.values()))} cells", *totals(run), sep="\n")


if __name__ == "__main__":
    main()
