"""Turn what was measured into the published tables and pictures.

    python -m benchmarks grid random scaling use replaced adjoint --json run.json
    python -m benchmarks.report run.json ... --markdown results.md --summary short.md --plot results.svg
    python -m benchmarks.report run.json ... --adjoint adjoint.md --packages field.md --lines lines.md
    python -m benchmarks.report results.md --plot results.svg --detail-plot dots.svg --scaling scaling.svg
    python -m benchmarks.report lines.md --lines-plot lines.svg

Of several runs on one machine, each cell's fastest round counts. A report that was written before can be drawn again,
from the figures in its tables.
"""

import argparse
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from os.path import relpath
from pathlib import Path

from bcast._benchmark.table import LOST
from benchmarks.copies import STATES, size_name
from benchmarks.harness import Measured, label_of, mean
from benchmarks.packages import CALLS, LENGTHS, LINES, PICTURES
from benchmarks.peers import OWN
from benchmarks.pictures import plot_detail, plot_lines, plot_ratios, plot_scaling
from benchmarks.runs import Run, known, load, of_dtype, of_state, read_report, to_limit, to_numpy, to_peer
from benchmarks.sums import FLOATS, SUM_DTYPES

__all__ = ["main"]

RATIO_LEGEND = (
    "*NumPy*, *best peer*: its time / bcast's time; below 1, bcast is slower, and cells below "
    f"{LOST} count as lost and are bold. *limit*: the time of the fastest "
)
STATE_LEGEND = "*fresh*: into a new array; *warm*: into an existing `out`"
LEGEND = f"{RATIO_LEGEND}fill of the same number of bytes of warm memory / bcast's time. {STATE_LEGEND}."
ADJOINT_LEGEND = (
    f"{RATIO_LEGEND}plain read of the same number of bytes / bcast's time. *GB/s*: of the bytes read. *ulp*: the "
    "largest error of sums of positive numbers, in units in the last place; at most 0.5 if a sum is rounded only once; "
    f"integers must be exact. {STATE_LEGEND}, if it has 1 MB or more. `einsum` is NumPy's."
)
HEADS = ("GB/s", "limit", "NumPy", "best peer")
FLAT = 1 << 26  # bytes from which on a byte should cost the same
READ = 1 << 22  # bytes from which on sums should be as fast as memory is read
DRAWN = {  # by option
    "plot": "families of workloads",
    "detail_plot": "each workload and dtype",
    "scaling": "sizes and threads",
}
RATIOS = {"NumPy": to_numpy, "best peer": to_peer, "limit": to_limit}
Subset = tuple[str, list[Measured]]  # what it is called, and what is in it


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


def rival(cell: Measured) -> str:
    """Write the ratio to the best peer, and who that is."""
    return f"{show(to_peer(cell))} {cell.best_peer}" if cell.best_peer else ""


def figures(cell: Measured | None) -> list[str]:
    """Write the columns of one cell, under `HEADS`."""
    if cell is None:
        return [""] * len(HEADS)
    return [f"{cell.bandwidth / 1e9:.3g}", percent(to_limit(cell)), show(to_numpy(cell)), rival(cell)]


def subsets(run: Run) -> Iterator[Subset]:
    """Yield the name and the cells of what is summed up of the broadcasts."""
    for state in STATES:
        of_grid = of_state(run.cells("grid"), state)
        yield f"grid, {state}", of_grid
        yield (
            f"grid, {state}, innermost repeated axis of 2 to 4",
            [each for each in of_grid if 2 <= each.innermost <= 4],
        )
        yield f"random shapes, {state}", of_state(run.cells("random"), state)


def adjoint_subsets(run: Run) -> Iterator[Subset]:
    """Yield the name and the cells of what is summed up of the sums."""
    by_dtype = {dtype: of_dtype(run.cells("adjoint"), dtype) for dtype in SUM_DTYPES}
    yield ", ".join(FLOATS), [cell for dtype in FLOATS for cell in by_dtype[dtype]]
    yield from by_dtype.items()
    for dtype in FLOATS:
        yield f"{dtype} from {size_name(READ)} on", [cell for cell in by_dtype[dtype] if cell.nbytes >= READ]
    yield "warm", of_state(run.cells("adjoint"), "warm")


def totals(named: Iterable[Subset]) -> Iterator[str]:
    """Yield the lines of a table of geometric means and worst cells."""
    rows = []
    for name, cells in named:
        row = [name, str(len(cells))]
        for head, ratio in RATIOS.items():
            write = percent if head == "limit" else show
            if among := known(ratio, cells):
                worst = min(among, key=ratio)
                row += [write(mean(map(ratio, among))), f"{write(ratio(worst))} ({worst.name}, {worst.dtype})"]
            else:
                row += ["", ""]
        if cells:
            rows.append(row)
    heads = ["cells", "number", *(text for head in RATIOS for text in (f"{head}: mean", "worst"))]
    yield from table(heads, rows, 1)


def losses(cells: list[Measured]) -> Iterator[str]:
    """Yield a list of the cells lost to NumPy, then of those lost to a peer."""
    lost: dict[bool, list[str]] = {True: [], False: []}
    for cell in cells:
        for name in cell.lost_to:
            where = f"{cell.name}, {cell.dtype}, {cell.state}"
            lost[name == "numpy"].append(f"- {where}: {show(cell.ratio(name))} {name}")
    for title, lines in (("NumPy", lost[True]), ("the best peer", lost[False])):
        yield from ("", f"## Lost to {title}: {len(lines)} of {len(cells)} cells", "", *(lines or ["None."]))


def all_cells(run: Run, family: str, title: str) -> Iterator[str]:
    """Yield the table of a family, fresh and warm side by side."""
    found, rows = run.families[family], []
    for name, dtype, threads in dict.fromkeys((name, dtype, threads) for name, dtype, _, threads in found):
        both = (found.get((name, dtype, state, threads)) for state in STATES)
        rows.append([name, dtype, *(text for cell in both for text in figures(cell))])
    if rows:
        heads = ["workload", "dtype", *(f"{state}: {head}" for state in STATES for head in HEADS)]
        yield from ("", f"## {title}", "", *table(heads, rows, 2))


def scaling(run: Run) -> Iterator[str]:
    """Yield a table of the sizes and the numbers of threads, and what they say together."""
    cells = run.cells("scaling")
    if not cells:
        return
    yield from ("", "## From 1 KB to the largest size that fits", "")
    rows = [[cell.name, cell.state, str(cell.threads), *figures(cell)] for cell in cells]
    yield from table(["workload", "state", "threads", *HEADS], rows, 2)
    yield ""
    lines = dict.fromkeys((cell.group, cell.state, cell.threads) for cell in cells)
    for pattern, state, threads in lines:
        costs = [1 / cell.bandwidth for cell in run.line(pattern, state, threads) if cell.nbytes >= FLAT]
        if len(costs) > 1:
            spread = f"{max(costs) / min(costs):.2f} times as long per byte as the fastest"
            yield f"- {pattern}, {state}, threads: {threads}: from 64 MB on, the slowest size takes {spread}"
    for _, state, threads in (line for line in lines if line[0] == "rank 12"):
        few = {cell.nbytes: cell.times["bcast"] for cell in run.line("rank 3", state, threads)}
        many = {cell.nbytes: cell.times["bcast"] for cell in run.line("rank 12", state, threads)}
        if sizes := few.keys() & many.keys():
            dearer = mean(many[size] / few[size] for size in sizes)
            yield f"- rank 12, {state}, threads: {threads}: {dearer:.2f} times the time of rank 3, geometric mean"


def uses(run: Run) -> Iterator[str]:
    """Yield the table of results that are used."""
    if cells := run.cells("use"):
        rows = [
            [cell.name, cell.state, f"{cell.times['bcast'] * 1e3:.3g}", show(to_numpy(cell)), rival(cell)]
            for cell in cells
        ]
        yield from (
            "",
            "## Results in use",
            "",
            "*kept*: in a loop, each until the next one is computed; *read*: immediately, by NumPy's `max`, whose time "
            "is included.",
            "",
            *table(["workload", "use", "bcast, ms", *HEADS[2:]], rows, 2),
        )


def drop_ins(run: Run) -> Iterator[str]:
    """Yield the table of the functions that replace NumPy's; of `elementwise` what it adds to the bare ufunc."""
    rows = []
    for cell in run.cells("replaced"):
        own = cell.times["bcast"]
        ratio, added = show(to_numpy(cell)), ""
        if cell.group == "elementwise":
            ratio, added = added, f"{(own - cell.times['numpy']) * 1e9:.0f}"
        columns = [f"{cell.nbytes / 1e6:.3g}", f"{own * 1e6:.3g}", ratio, rival(cell), added]
        rows.append([cell.name, cell.dtype, *columns])
    if rows:
        yield from ("", "## Replacements of NumPy's functions, fresh", "")
        yield from table(["call", "dtype", "MB", "bcast, us", "NumPy", "best peer", "added, ns"], rows, 2)


def markdown(run: Run, pictures: Mapping[str, str] | None = None) -> str:
    """Write everything: links to the pictures, in short what it says above, then all cells, lost ones listed."""
    links = ", ".join(f"[{title}]({name})" for title, name in (pictures or {}).items())
    lines = [
        "# bcast compared with NumPy and its peers",
        "",
        *(f"    {line}" for line in run.head),
        "",
        LEGEND,
        "",
        *([f"Pictures: {links}.", ""] if links else []),
        *totals(subsets(run)),
        *losses([*run.cells("grid"), *run.cells("random")]),
        *all_cells(run, "grid", "The grid"),
        *all_cells(run, "random", "Random shapes"),
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
    cells = run.cells("adjoint")
    for name in dict.fromkeys(name for cell in cells for name in cell.errors):
        row = [name]
        for dtype in SUM_DTYPES:
            among = [cell for cell in of_dtype(cells, dtype) if name in cell.errors]
            worst = max(among, key=lambda cell: cell.errors[name], default=None)
            where = f" ({worst.name})" if worst and worst.errors[name] > 1 else ""
            row.append(f"{ulp(worst.errors[name])}{where}" if worst else "")
        rows.append(row)
    yield from table(["largest error, ulp", *SUM_DTYPES], rows, 1)


def adjoint(run: Run) -> str:
    """Write everything about sums: in short, each pattern in short, then all cells."""
    cells = run.cells("adjoint")
    names = list(dict.fromkeys(name for cell in cells for name in cell.errors))
    patterns = [
        (pattern, [of_dtype(among, dtype) for dtype in FLOATS]) for pattern, among in run.groups("adjoint").items()
    ]
    rows = [
        [cell.name, cell.dtype, cell.state, *figures(cell), *(ulp(cell.errors.get(name)) for name in names)]
        for cell in cells
    ]
    lines = [
        "# The adjoint compared with NumPy and its peers",
        "",
        *(f"    {line}" for line in run.head),
        "",
        ADJOINT_LEGEND,
        "",
        *totals(adjoint_subsets(run)),
        "",
        *errors(run),
        *losses(cells),
        "",
        "## Range of each pattern over all sizes",
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


def spans(cells: list[Measured]) -> list[str]:
    """Write the span of each ratio; the peer that is the nearest, or the farthest ahead, in brackets."""
    row = []
    for head, ratio in RATIOS.items():
        among = sorted(known(ratio, cells), key=ratio)
        text = span([(percent if head == "limit" else show)(ratio(cell)) for cell in among]) if among else ""
        row.append(f"{text} ({among[0].best_peer})" if among and head == "best peer" else text)
    return row


def ranges(kinds: Iterable[str], groups: list[tuple[str, list[list[Measured]]]]) -> Iterator[str]:
    """Yield the lines of a table: of each group the range of the ratios of each kind of cells, their means at last."""
    rows = [[group, *(text for cells in by_kind for text in spans(cells))] for group, by_kind in groups]
    means = ["geometric mean of all"]
    for column in zip(*(by_kind for _, by_kind in groups), strict=True):
        for head, ratio in RATIOS.items():
            among = known(ratio, chain(*column))
            means.append((percent if head == "limit" else show)(mean(map(ratio, among))) if among else "")
    yield from table(["workload", *(f"{kind}: {head}" for kind in kinds for head in RATIOS)], [*rows, means], 1)


def summary(run: Run) -> str:
    """Write a short table: a row for each group of the grid, the range of ratios over its workloads and dtypes."""
    groups = [(group, [of_state(cells, state) for state in STATES]) for group, cells in run.groups("grid").items()]
    if cells := run.cells("random"):
        groups.append(("random shapes", [of_state(cells, state) for state in STATES]))
    lines = [
        *ranges(STATES, groups),
        "",
        f"{LEGEND} Lowest and highest of all sizes and dtypes; in brackets the peer that is the nearest, or the "
        "farthest ahead.",
        "",
        "<br>".join(run.head),
    ]
    return "\n".join(lines) + "\n"


def times_as_fast(before: float, after: float) -> str:
    """Write how many times as fast a way is, in two digits."""
    times = before / after
    return f"{times:.{1 if times < 9.95 else 0}f}"


def packages(run: Run) -> str:
    """Write the table of calls of other packages, and the lines that are changed."""
    found = run.cells("packages")
    rows_of_calls = {row.name: row for row in CALLS}
    gains = [cell.times["numpy"] / cell.times["bcast, patched"] for cell in found]
    versions = ", ".join(run.peers[package] for package in run.groups("packages"))
    lines = [
        f"{run.machine}; {versions}.",
        "",
        "| call | before, ms | with the patch | with the new line |",
        "|---|--:|--:|--:|",
    ]
    for cell, gain in zip(found, gains, strict=True):
        before = cell.times["numpy"]
        by_patch = f"{gain:.2f}" if gain < 1.5 else times_as_fast(gain, 1)
        lines.append(
            f"| {cell.name} | {before * 1e3:.2f} | {by_patch} | {times_as_fast(before, cell.times['bcast'])} |"
        )
    many = sum(gain >= 1.5 for gain in gains)
    lines += ["", f"With the patch alone, {many} of {len(gains)} calls take at most two thirds of their original time."]

    lines += ["", "### The code of each row"]
    for cell in found:
        row = rows_of_calls[cell.name]
        where = f", in `{row.place}`" * bool(row.place)
        both = f"{row.line or row.call}\n{row.ours}".replace("'", '"')
        lines += ["", f"{row.name}{where}:", "", "```python", *both.splitlines(), "```"]
    return "\n".join(lines) + "\n"


def numpy_lines(run: Run) -> str:
    """Write the table of NumPy's lines by the length of the last axis, and that of lines about pictures."""
    found = {(cell.name, cell.state): cell for cell in [*run.cells("lines"), *run.cells("pictures")]}

    def gain(name: str, state: str) -> str:
        cell = found.get((name, state))
        return "" if cell is None else times_as_fast(cell.times["numpy"], cell.times["bcast"])

    lines = [f"{run.machine}; a million float32 items.", ""]
    lines += [f"| NumPy | bcast | {' | '.join(map(str, LENGTHS))} |", f"|---|---|{'--:|' * len(LENGTHS)}"]
    for _, line, ours in LINES:
        gains = [gain(line, f"n = {n}") for n in LENGTHS]
        lines.append(f"| `{line}` | `{ours}` | {' | '.join(gains)} |")

    lines += [
        "",
        "Pictures have 1080 x 1920 pixels of bytes; `chw` is a view of `hwc`, and `back` an HWC view of CHW floats:",
        "",
    ]
    lines += ["| the line | bcast | times |", "|---|---|--:|"]
    lines += [f"| `{line}` | `{ours}` | {gain(line, '')} |" for line, ours in PICTURES]
    return "\n".join(lines) + "\n"


def cell_by_cell(family: str, title: str) -> Callable[[Run], str]:
    """Return what writes the means, the lost cells and all cells of a family, with a column for each competitor."""

    def write(run: Run) -> str:
        cells = run.cells(family)
        others = ["numpy", *dict.fromkeys(name for cell in cells for name in cell.times if name not in OWN)]
        by_peers = known(to_peer, cells)
        lines = [f"# {title}", "", f"{run.machine}; {', '.join(run.peers.values())}.", ""]
        lines += [f"Geometric means of others' time / bcast's. Cells below {LOST} count as lost and are bold.", ""]
        lines += [
            f"| function | cells | NumPy | {' | '.join(others[1:])} | best peer |",
            f"|---|{'--:|' * (len(others) + 2)}",
        ]
        for group, some in [*run.groups(family).items(), ("all", cells)]:
            ratios = [[cell.ratio(name) for cell in some if name in cell.times] for name in others]
            ratios.append([to_peer(cell) for cell in known(to_peer, some)])
            means = [show(mean(each)) if each else "" for each in ratios]
            lines.append(f"| {group} | {len(some)} | {' | '.join(means)} |")

        behind_numpy = [cell for cell in cells if to_numpy(cell) < LOST]
        behind_peer = [cell for cell in by_peers if to_peer(cell) < LOST]
        to_numpys = f"Of {len(cells)} cells, {len(behind_numpy)} are lost to NumPy"
        lines += ["", f"{to_numpys}; of the {len(by_peers)} with peers, {len(behind_peer)} to the best peer."]
        lines += ["", "Lost to NumPy:", ""] if behind_numpy else []
        lines += [f"* {label_of(cell)}: {to_numpy(cell):.2f}" for cell in behind_numpy]
        lines += ["", f"| cell | dtype | us | {' | '.join(others)} |", f"|---|---|{'--:|' * (len(others) + 1)}"]
        for cell in cells:
            ratios_of_cell = [show(cell.ratio(name)) if name in cell.times else "" for name in others]
            lines.append(
                f"| {cell.name} | {cell.dtype} | {cell.times['bcast'] * 1e6:.1f} | {' | '.join(ratios_of_cell)} |"
            )
        return "\n".join(lines) + "\n"

    return write


TABLES: dict[str, tuple[Callable[[Run], str], str]] = {  # by option: what writes it, and what it is
    "summary": (summary, "the short table of broadcasts"),
    "adjoint": (adjoint, "the tables of the sums"),
    "packages": (packages, "the table of calls of other packages"),
    "lines": (numpy_lines, "the tables of NumPy's lines and of pictures"),
    "reductions": (cell_by_cell("reductions", "Reductions"), "the table of reductions other than sums"),
    "vectors": (cell_by_cell("vectors", "Vectors of 2 to 4 items"), "the table of vectors of 2 to 4 items"),
}


def main(arguments: list[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report", description=__doc__.partition("\n")[0])
    parser.add_argument("runs", nargs="+", type=Path, help="files written by --json, of one machine; or a report")
    parser.add_argument("--markdown", type=Path, help="where all tables of broadcasts go")
    for name, (_, what) in TABLES.items():
        parser.add_argument(f"--{name}", type=Path, help=f"where {what} goes")
    for name, what in DRAWN.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=Path, help=f"where the picture of {what} goes")
    parser.add_argument("--lines-plot", type=Path, help="where the picture of NumPy's lines goes: of lines.md")
    options = parser.parse_args(arguments)
    if options.lines_plot:
        plot_lines(options.runs[0].read_text(encoding="utf-8"), options.lines_plot)
        return

    try:
        run = read_report(options.runs[0]) if options.runs[0].suffix == ".md" else load(options.runs)
    except ValueError as error:
        parser.error(str(error))
    pictures = {"plot": plot_ratios, "detail_plot": plot_detail, "scaling": plot_scaling}
    given = {name: path for name in pictures if (path := getattr(options, name))}
    for name, path in given.items():
        pictures[name](run, path)
    if options.markdown:
        names = {DRAWN[name]: relpath(path, options.markdown.parent) for name, path in given.items()}
        options.markdown.write_text(markdown(run, names), encoding="utf-8")
    for name, (write, _) in TABLES.items():
        if path := getattr(options, name):
            path.write_text(write(run), encoding="utf-8")
    named = [*subsets(run), *adjoint_subsets(run)]
    print(f"{sum(map(len, run.families.values()))} cells", *totals(named), sep="\n")


if __name__ == "__main__":
    main()
