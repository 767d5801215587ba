"""What each number of `_runtime/tuning.h` is worth: its cells are timed with the number halved and doubled.

A build in which the environment sets the numbers is made first. Three of its processes, which differ in one number
alone, then make the calls of some cells by turns. Among many cells some differ by chance: those that differ most are
timed once more, and what these new rounds show is what counts.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import sleep
from typing import NamedTuple

import numpy as np

import bcast
from bcast._benchmark import timing
from benchmarks.harness import Cell
from benchmarks.peers import call_of
from benchmarks.separate import REST_SECONDS, WARM_UP_SECONDS

ROOT = Path(__file__).resolve().parents[1]
HEADER = Path("src/bcast/_runtime/tuning.h")
SHOWN = 0.03  # of the time: a smaller effect is noise
CELLS = 40  # that are timed for a number: as many of each kind as there are among all
FIRST_ROUNDS = 2  # which choose the cells that are timed once more
CHOSEN = 2  # of the fastest, and of the slowest, for each factor
FACTORS = {"halved": 0.5, "as it is": 1.0, "doubled": 2.0}


class Number(NamedTuple):
    """A number of the file, and the families of cells that the head of its section names."""

    name: str
    value: int
    families: tuple[str, ...]


class Effect(NamedTuple):
    """The effect of a factor on a cell: the time with it, divided by the time without it."""

    ratio: float
    factor: str
    cell: str


def numbers(text: str) -> Iterator[Number]:
    """Yield the numbers of the header's text."""
    families: tuple[str, ...] = ()
    for found in re.finditer(r"^/\* ---- .*Cells: (.*) ---- |^BCAST_NUMBER\((\w+), ([\d <]+)\)$", text, re.MULTILINE):
        if found[1]:
            families = tuple(found[1].split(", "))
        else:
            value, _, shift = found[3].partition("<<")
            yield Number(found[2], int(value) << int(shift or 0), families)


def build(folder: Path) -> Path:
    """Compile the package so that the environment sets its numbers; return the folder to import it from."""
    sources = folder / "sources"
    sources.mkdir()
    for name in ("LICENSE", "README.md", "pyproject.toml", "setup.py"):
        shutil.copy2(ROOT / name, sources)
    shutil.copytree(ROOT / "src", sources / "src", ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__"))
    command = [sys.executable, "setup.py", "-q", "build", "--build-lib", str(folder / "lib")]
    flags = {name: f"{os.environ.get(name, '')} -DBCAST_TUNABLE" for name in ("CFLAGS", "CXXFLAGS")}
    subprocess.run(command, cwd=sources, env=os.environ | flags, check=True)
    return folder / "lib"


@contextmanager
def process(library: Path, number: Number, factor: float, options: Namespace) -> Iterator[subprocess.Popen[str]]:
    """Start a process in which a number is another one; it times the cells whose numbers it reads."""
    value = max(1, int(number.value * factor))
    environment = {**os.environ, f"BCAST_NUMBER_{number.name}": str(value)}
    environment["PYTHONPATH"] = os.pathsep.join([str(library), str(ROOT)])
    command = [sys.executable, "-m", "benchmarks.tuning", json.dumps(vars(options), default=str)]
    command += number.families
    with subprocess.Popen(
        command, cwd=library, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as started:
        try:
            yield started
        finally:
            started.kill()


def ask(started: subprocess.Popen[str], question: str) -> str:
    """Send a line to a process, and return the line that it answers with."""
    assert started.stdin
    assert started.stdout
    print(question, file=started.stdin, flush=True)
    answer = started.stdout.readline()
    if not answer:
        sys.exit("a process that times cells has ended")
    return answer.strip()


def effects(library: Path, number: Number, options: Namespace) -> Iterator[Effect]:
    """Time some cells of a number with each factor, then those again that differ most; yield what these show."""
    with ExitStack() as stack:
        workers = {
            name: stack.enter_context(process(library, number, factor, options)) for name, factor in FACTORS.items()
        }
        labels = json.loads(ask(workers["as it is"], "labels"))
        assert all(json.loads(ask(worker, "labels")) == labels for worker in workers.values())
        first = {index: ratios(workers, index, FIRST_ROUNDS) for index in sample(len(labels))}
        for factor in ("halved", "doubled"):
            order = sorted(first, key=lambda index: first[index][factor])
            for index in {*order[:CHOSEN], *order[-CHOSEN:]}:
                yield Effect(ratios(workers, index, options.rounds)[factor], factor, labels[index])


def sample(count: int) -> range:
    """Return the numbers of some cells out of `count`, spread evenly."""
    return range(0, count, -(-count // CELLS))


def ratios(workers: dict[str, subprocess.Popen[str]], index: int, rounds: int) -> dict[str, float]:
    """Time a cell with each factor, by turns; return the fastest rounds, divided by that of the number as it is."""
    best = dict.fromkeys(workers, float("inf"))
    order = list(workers)
    for _ in range(rounds):
        for name in order:
            best[name] = min(best[name], float(ask(workers[name], str(index))))
        order.reverse()  # who comes after an idle moment waits for the CPU to wake
    return {name: taken / best["as it is"] for name, taken in best.items()}


def measure_tuning(options: Namespace) -> None:
    """Print the largest gain and loss of each number, whose name `--only` may say a part of."""
    chosen = [each for each in numbers((ROOT / HEADER).read_text("utf-8")) if options.only.upper() in each.name]
    with tempfile.TemporaryDirectory() as name:
        library = build(Path(name))
        for number in chosen:
            found = sorted(effects(library, number, options))
            told = [effect for effect in (found[0], found[-1]) if abs(effect.ratio - 1) > SHOWN]
            words = "; ".join(f"{each.ratio:.2f} {each.factor}: {each.cell}" for each in told)
            print(f"{number.name:<28} {number.value:>10}  {words or 'no effect'}", flush=True)


def cells_of(families: list[str], options: Namespace) -> list[Cell]:
    """Return the cells of some families."""
    from benchmarks.cells import FAMILIES  # which names this module

    return [cell for name in families for cell in FAMILIES[name].cells(options)]


def answer(cells: list[Cell]) -> None:
    """Answer the lines of the process that asks: with the cells' labels, or with the seconds of one cell's call."""
    for line in sys.stdin:
        if line.strip() == "labels":
            print(json.dumps([f"{cell.family}: {cell.label}" for cell in cells]), flush=True)
            continue
        cell = cells[int(line)]
        call = call_of("bcast", cell.ways["bcast"], cell.names())
        assert call is not None
        with np.errstate(all="ignore"):
            rounds = timing.measure({"bcast": call}, 0, WARM_UP_SECONDS, lambda: sleep(REST_SECONDS))
        print(min(rounds["bcast"]), flush=True)


if __name__ == "__main__":
    given = Namespace(**json.loads(sys.argv[1]))
    bcast.set_num_threads(given.threads)
    answer(cells_of(sys.argv[2:], given))
