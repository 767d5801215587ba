"""Time cells: `python -m benchmarks FAMILY ... [--only WORDS]`; `--list` names all families, or the cells of some."""

import argparse
import os
import sys
from contextlib import ExitStack
from pathlib import Path

from bcast import get_num_threads, set_num_threads
from bcast._benchmark.table import machine
from benchmarks import harness
from benchmarks.cells import EVERYTHING, FAMILIES, OTHERS, Family
from benchmarks.copies import SEED
from benchmarks.harness import Cell, Measured
from benchmarks.peers import bound, cpus


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parsed = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parsed.add_argument("families", nargs="*", metavar="FAMILY", help=f"one of {', '.join(EVERYTHING)}")
    parsed.add_argument("--list", action="store_true", help="name the families, or the cells of those given")
    parsed.add_argument("--only", default="", metavar="WORDS", help="only cells whose names hold these words")
    parsed.add_argument("--threads", type=int, default=cpus(), help="of each competitor (default: %(default)s)")
    parsed.add_argument("--rounds", type=int, default=harness.ROUNDS, help="turns of each (default: %(default)s)")
    parsed.add_argument("--seed", type=int, default=SEED, help="of random shapes and of the search")
    parsed.add_argument("--json", type=Path, metavar="FILE", help="save what is measured for `benchmarks.report`")
    some = parsed.add_argument_group("of some families")
    some.add_argument("--seconds", type=float, default=1.0, help="busy: of each line; search: in all")
    some.add_argument("--case", type=int, metavar="N", help="search: the only call that is timed")
    some.add_argument("--items", type=int, default=4_000_000, help="search: of a call, at most")
    some.add_argument("--gigabytes", type=float, default=1.0, help="apply, ticks: the size of the output")
    some.add_argument("--folder", type=Path, help="apply: where files are written, with room for two outputs")
    return parsed


def read_arguments(arguments: list[str] | None) -> argparse.Namespace:
    """Parse the command line; refuse what there is not."""
    parsed = parser()
    options = parsed.parse_args(arguments)
    for family in options.families:
        if family not in EVERYTHING:
            parsed.error(f"FAMILY expected one of {', '.join(EVERYTHING)}, got {family!r}")
    if not 1 <= options.threads <= cpus():
        parsed.error(f"--threads expected 1 to {cpus()}, the number of CPUs, got {options.threads}")
    if options.rounds < 1:
        parsed.error(f"--rounds expected 1 or more, got {options.rounds}")
    return options


def cells_of(family: Family, options: argparse.Namespace) -> list[Cell]:
    """Return the cells of a family whose labels hold the words of `--only`."""
    return [cell for cell in family.cells(options) if options.only in cell.label]


def show_list(options: argparse.Namespace) -> None:
    """Print what there is."""
    if not options.families and not options.only:
        for name, family in EVERYTHING.items():
            print(f"{name:<12} {family.what} ({family.published})")
        return
    for name in options.families or FAMILIES:
        if name in FAMILIES:
            for cell in cells_of(FAMILIES[name], options):
                print(f"{name:<12} {cell.label}")


def measure_family(family: Family, options: argparse.Namespace) -> list[Measured]:
    """Time the cells of a family, and print a line for each."""
    cells = cells_of(family, options)
    competitors = list(dict.fromkeys(name for cell in cells for name in cell.competitors))
    found: list[Measured] = []
    for cell in cells:
        each = harness.measured(cell, options.rounds)
        if not found:
            print(*harness.head(competitors, bool(each.errors)), sep="\n")
        found.append(each)
        print(harness.line(each, competitors, bool(each.errors)), flush=True)
    print("", *harness.summary(found), sep="\n")
    return found


def main(arguments: list[str] | None = None) -> None:
    """Run the command line."""
    options = read_arguments(arguments)
    if options.list or not options.families:
        show_list(options)
        return
    load = f"; load {os.getloadavg()[0]:.2f}, which should be near 0" if hasattr(os, "getloadavg") else ""
    print(f"{machine(options.threads)}{load}", file=sys.stderr)

    found: list[Measured] = []
    with bound(options.threads), ExitStack() as stack:
        stack.callback(set_num_threads, get_num_threads())
        set_num_threads(options.threads)
        for name in options.families:
            print(f"\n## {name}: {EVERYTHING[name].what}\n", flush=True)
            if name in FAMILIES:
                found += measure_family(FAMILIES[name], options)
            else:
                OTHERS[name].measure(options)
            if options.json:
                harness.save(options.json, machine(options.threads), found)


if __name__ == "__main__":
    main()
