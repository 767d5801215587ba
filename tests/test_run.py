"""Programs run by ``python -m bcast run``: what they see of themselves, what they see of NumPy, and how they end."""

import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
from _commands import posix, python

import bcast
from bcast.__main__ import main

SHOW = """
import sys, numpy as np
print(__name__, sys.argv, sys.path[0], [name for name in dir(np) if type(getattr(np, name)).__name__ == "StandIn"])
assert sys.modules["__main__"].__dict__ is globals()
np.tile(np.arange(3), 2), np.tile([1, 2], 2)
"""


@pytest.fixture
def program(folder):
    (folder / "sub").mkdir()
    script = folder / "sub" / "show.py"
    script.write_text(SHOW)
    return script


def run(*arguments, **options):
    done = python("-m", "bcast", "run", *map(str, arguments), **options)
    return done.returncode, done.stdout, done.stderr


def test_a_script_is_run_as_python_runs_it(program):
    arguments = ["-x", "--offset", "-1", "--", "--counts", "a b"]
    status, out, err = run("sub/show.py", *arguments)
    names = ["meshgrid", "repeat", "tile"]
    assert (status, err) == (0, "")
    assert out == f"__main__ {['sub/show.py', *arguments]} {program.parent} {names}\n"
    alone = python("sub/show.py", *arguments).stdout
    assert alone == out.replace(str(names), "[]")


def test_a_module_is_run_as_python_runs_it(program):
    (program.parent / "__init__.py").touch()
    arguments = ["-q", "--names", "x", "-3"]
    status, out, err = run("--names", "tile,broadcast_arrays", "-m", "sub.show", *arguments)
    assert (status, err) == (0, "")
    assert out == f"__main__ {[str(program), *arguments]} {Path.cwd()} ['broadcast_arrays', 'tile']\n"
    alone = python("-m", "sub.show", *arguments).stdout
    assert alone == out.replace("['broadcast_arrays', 'tile']", "[]")


def test_calls_are_counted(program):
    status, _, err = run("--counts", program)
    assert (status, err) == (0, "bcast: numpy.tile: calls taken 1, passed on 1\n")
    program.write_text(SHOW + "raise SystemExit(7)")
    status, _, err = run("--names", "tile", "--counts", program)
    assert (status, err) == (7, "bcast: numpy.tile: calls taken 1, passed on 1\n")


def test_errors_are_the_programs(program):
    program.write_text("raise KeyError('mine')")
    status, out, err = run(program)
    assert (status, out) == (1, "")
    assert err.startswith("Traceback")
    assert err.endswith("KeyError: 'mine'\n")


@posix
def test_an_interrupt_is_the_programs(program):
    program.write_text("import os, signal; os.kill(os.getpid(), signal.SIGINT)")
    code = "import signal, runpy; signal.signal(signal.SIGINT, signal.default_int_handler); "
    code += "runpy.run_module('bcast', run_name='__main__', alter_sys=True)"
    done = python("-c", code, "run", str(program))
    assert (done.returncode, done.stderr.splitlines()[-1]) == (-signal.SIGINT, "KeyboardInterrupt")


def test_stdout_is_the_programs(program):
    program.write_text("import sys; print(sys.stdout.errors)")
    assert run(program)[1] == python(str(program)).stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "expected a script, or -m and a module"),
        (["--counts"], "expected a script, or -m and a module"),
        (["-m"], "expected a script, or -m and a module"),
        (["nope.py"], f"nope.py: {os.strerror(2)}"),
        (["-m", "nope.nope"], "`-m` expected the name of a module, got nope.nope: there is none"),
        (
            ["--names", "sum", "x.py"],
            "`--names` expected names among tile, repeat, meshgrid, broadcast_arrays, got 'sum'",
        ),
        (["--nope", "x.py"], "unrecognized arguments: --nope"),
    ],
)
def test_what_is_not_run(folder, capsys, arguments, message):
    (folder / "x.py").write_text("1 / 0")
    assert main(["run", *arguments]) == 2
    assert capsys.readouterr() == ("", f"bcast: error: {message}\n")


def test_nothing_of_a_run_is_left_in_this_process(program, capsys):
    before = sys.argv, list(sys.path), np.tile
    assert main(["run", str(program), "a"]) == 0
    assert "['meshgrid', 'repeat', 'tile']" in capsys.readouterr().out
    assert (sys.argv, sys.path, np.tile) == before
    assert np.tile is before[2]
    assert not bcast.is_patched()
