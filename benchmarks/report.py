"""Turn saved runs of the suites into Markdown tables and plots.

    python benchmarks/report.py RUN.json ... --markdown ALL.md --summary TABLE.md --plot RATIOS.svg --scaling S.svg
    python benchmarks/report.py RUN.json ... --adjoint SUMS.md --adjoint-plot SUMS.svg
    python benchmarks/report.py ALL.md --plot RATIOS.svg --detail-plot DOTS.svg --scaling S.svg

Of several runs on one machine, each cell's fastest round counts. A report that was written before can be drawn again,
from the figures in its tables.
"""

import argparse
import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from os.path import relpath
from pathlib import Path

from plots import plot_adjoint, plot_detail, plot_ratios, plot_scaling
from runs import Cell, Run, known, load, mean, read_report, to_limit, to_numpy, to_peer
from shapes import FLOATS, SUM_DTYPES, label
from workloads import STATES

from bcast._benchmark.table import LOST

RATIO_LEGEND = (
    "*NumPy*, *best peer*: its time / bcast's time; below 1 bcast is the slower one, and below "
    f"{LOST} the cell is lost and set in bold. *limit*: the time of the fastest "
)
STATE_LEGEND = "*fresh*: into a new array; *warm*: into the same `out` again"
LEGEND = f"{RATIO_LEGEND}fill of as many bytes of warm memory / bcast's time, fresh or warm. {STATE_LEGEND}."
ADJOINT_LEGEND = (
    f"{RATIO_LEGEND}plain read of as many bytes / bcast's time. *GB/s*: of what is read. *ulp*: by how many units in "
    "the last place the worst item is off the exact sum of positive numbers, 0.5 at most where a sum is rounded but "
    f"once; integers must be exact. {STATE_LEGEND}, where that is 1 MB or more. `einsum` is NumPy's."
)
HEADS = ("GB/s", "limit", "NumPy", "best peer")
FLAT = 1 << 26  # bytes from which on a byte should cost the same
READ = 1 << 22  # bytes from which on sums should be as fast as memory is read
PICTURES = {  # by option
    "plot": "families of workloads",
    "detail_plot": "each workload and dtype",
    "scaling": "sizes and threads",
}
RATIOS = {"NumPy": to_numpy, "best peer": to_peer, "limit": to_limit}
Subset = tuple[str, list[Cell]]  # what it is called, and what is in it


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


def subsets(run: Run) -> Iterator[Subset]:
    """Yield the name and the cells of what is summed up of the broadcasts."""
    few = [workload for workload, times in run.innermost.items() if 2 <= times <= 4]
    for state in STATES:
        yield f"grid, {state}", run.select("grid", state)
        yield f"grid, {state}, innermost repeated axis of 2 to 4", run.select("grid", state, few)
        yield f"random shapes, {state}", run.select("random", state)


def adjoint_subsets(run: Run) -> Iterator[Subset]:
    """Yield the name and the cells of what is summed up of the sums."""
    by_dtype = {dtype: run.of_dtype("adjoint", dtype) for dtype in SUM_DTYPES}
    yield ", ".join(FLOATS), [cell for dtype in FLOATS for cell in by_dtype[dtype]]
    yield from by_dtype.items()
    for dtype in FLOATS:
        yield f"{dtype} from {label(READ)} on", [cell for cell in by_dtype[dtype] if cell.nbytes >= READ]
    yield "warm", run.select("adjoint", "warm")


def totals(named: Iterable[Subset]) -> Iterator[str]:
    """Yield the lines of a table of geometric means and worst cells."""
    rows = []
    for name, cells in named:
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


def losses(cells: list[Cell]) -> Iterator[str]:
    """Yield a list of the cells lost to NumPy, then of those lost to a peer."""
    lost: dict[bool, list[str]] = {True: [], False: []}
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


def drop_ins(run: Run) -> Iterator[str]:
    """Yield the table of the functions that stand for NumPy's; of `elementwise` what it adds to the bare ufunc."""
    rows = []
    for cell in run.suites["numpy"].values():
        own = cell.times["bcast"]
        ratio, added = show(to_numpy(cell)), ""
        if run.family[cell.workload] == "elementwise":
            ratio, added = added, f"{(own - cell.times['numpy']) * 1e9:.0f}"
        columns = [f"{cell.nbytes / 1e6:.3g}", f"{own * 1e6:.3g}", ratio, rival(cell), added]
        rows.append([cell.workload, cell.dtype, *columns])
    if rows:
        yield from ("", "## In the place of NumPy's functions, fresh", "")
        yield from table(["call", "dtype", "MB", "bcast, us", "NumPy", "best peer", "added, ns"], rows, 2)


def markdown(run: Run, pictures: Mapping[str, str] | None = None) -> str:
    """Write everything: links to the pictures, in short what it says above, then all cells, lost ones listed."""
    links = ", ".join(f"[{title}]({name})" for title, name in (pictures or {}).items())
    lines = [
        "# bcast against NumPy and its peers",
        "",
        *(f"    {line}" for line in run.head),
        "",
        LEGEND,
        "",
        *([f"Pictures: {links}.", ""] if links else []),
        *totals(subsets(run)),
        *losses([*run.suites["grid"].values(), *run.suites["random"].values()]),
        *cells_of(run, "grid", "The grid"),
        *cells_of(run, "random", "Random shapes"),
        *scaling(run),
        *uses(run),
        *drop_ins(run),
    ]
    return "\n".join(lines) + "\n"


def ulp(error: float | None) -> str:
    """Write an error with up to three digits."""
    return "" if error is None else "0" if error == 0 else f"{error:.3g}" if error < 1e5 else f"{error:.1e}"


def errors(run: Run) -> Iterator[str]:
    """Yield the lines of a table of each competitor's largest error in each dtype, and where that is."""
    rows = []
    cells = run.suites["adjoint"].values()
    for name in dict.fromkeys(name for cell in cells for name in cell.errors):
        row = [name]
        for dtype in SUM_DTYPES:
            among = [cell for cell in run.of_dtype("adjoint", dtype) if name in cell.errors]
            worst = max(among, key=lambda cell: cell.errors[name], default=None)
            where = f" ({worst.workload})" if worst and worst.errors[name] > 1 else ""
            row.append(f"{ulp(worst.errors[name])}{where}" if worst else "")
        rows.append(row)
    yield from table(["largest error, ulp", *SUM_DTYPES], rows, 1)


def adjoint(run: Run) -> str:
    """Write everything about sums: in short, each pattern in short, then all cells."""
    cells = run.suites["adjoint"]
    names = list(dict.fromkeys(name for cell in cells.values() for name in cell.errors))
    patterns = [
        (family, [[cell for cell in run.of_dtype("adjoint", dtype) if cell.workload in workloads] for dtype in FLOATS])
        for family, workloads in run.families("adjoint").items()
    ]
    rows = [[*key[:3], *figures(cell), *(ulp(cell.errors.get(name)) for name in names)] for key, cell in cells.items()]
    lines = [
        "# The adjoint against NumPy and its peers",
        "",
        *(f"    {line}" for line in run.head),
        "",
        ADJOINT_LEGEND,
        "",
        *totals(adjoint_subsets(run)),
        "",
        *errors(run),
        *losses(list(cells.values())),
        "",
        "## Each pattern, from the worst of its sizes to the best",
        "",
        *ranges(FLOATS, patterns),
        "",
        "## All cells",
        "",
        *table(["workload", "dtype", "state", *HEADS, *(f"ulp: {name}" for name in names)], rows, 3),
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


def ranges(kinds: Iterable[str], families: list[tuple[str, list[list[Cell]]]]) -> Iterator[str]:
    """Yield the lines of a table: of each family the range of the ratios of each kind of cells, their means at last."""
    rows = [[family, *(text for cells in by_kind for text in spans(cells))] for family, by_kind in families]
    means = ["geometric mean of all"]
    for column in zip(*(by_kind for _, by_kind in families), strict=True):
        for head, ratio in RATIOS.items():
            among = known(ratio, chain(*column))
            means.append((percent if head == "limit" else show)(mean(map(ratio, among))) if among else "")
    yield from table(["workload", *(f"{kind}: {head}" for kind in kinds for head in RATIOS)], [*rows, means], 1)


def summary(run: Run) -> str:
    """Write a short table: a row for each family, the range of ratios over its workloads and dtypes."""
    families = [
        (family, [run.select("grid", state, workloads) for state in STATES])
        for family, workloads in run.families("grid").items()
    ]
    if run.suites["random"]:
        families.append(("random shapes", [run.select("random", state) for state in STATES]))
    lines = [
        *ranges(STATES, families),
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
    parser.add_argument(
        "runs", nargs="+", type=Path, help="files written by --benchmark-json, of one machine; or a report"
    )
    parser.add_argument("--markdown", type=Path, help="where all tables go")
    parser.add_argument("--summary", type=Path, help="where the short table goes")
    parser.add_argument("--plot", type=Path, help="where the picture of the ratios goes: .svg, .png, ...")
    parser.add_argument("--detail-plot", type=Path, help="where the picture of all workloads and dtypes goes")
    parser.add_argument("--scaling", type=Path, help="where the picture of sizes and threads goes")
    parser.add_argument("--adjoint", type=Path, help="where the tables of the sums go")
    parser.add_argument("--adjoint-plot", type=Path, help="where the picture of the sums goes")
    options = parser.parse_args(arguments)
    try:
        run = read_report(options.runs[0]) if options.runs[0].suffix == ".md" else load(options.runs)
    except ValueError as error:
        parser.error(str(error))
    if options.markdown:
        given = {title: getattr(options, name) for name, title in PICTURES.items()}
        names = {title: relpath(path, options.markdown.parent) for title, path in given.items() if path}
        options.markdown.write_text(markdown(run, names), encoding="utf-8")
    if options.summary:
        options.summary.write_text(summary(run), encoding="utf-8")
    if options.plot:
        plot_ratios(run, options.plot)
    if options.detail_plot:
        plot_detail(run, options.detail_plot)
    if options.scaling:
        plot_scaling(run, options.scaling)
    if options.adjoint:
        options.adjoint.write_text(adjoint(run), encoding="utf-8")
    if options.adjoint_plot:
        plot_adjoint(run, options.adjoint_plot)
    named = [*subsets(run), *adjoint_subsets(run)]
    print(f"{sum(map(len, run.suites.values()))} cells", *totals(named), sep="\n")


if __name__ == "__main__":
    main()
