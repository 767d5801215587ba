"""Programs run by ``python -m bcast run``: their own view of the interpreter, the patched NumPy, and how they end."""

import contextlib
import os
import re
import signal
from pathlib import Path

import pytest
from _commands import posix, python

import bcast
from bcast.__main__ import main
from bcast._api.patching import DEFAULT_NAMES, GROUPS, OTHER_NAMES

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
    """Return how a program ended and what it wrote, with no time in it."""
    done = python("-m", "bcast", "run", *map(str, arguments), **options)
    return done.returncode, done.stdout, re.sub(r"\d+\.\d\d ms", "some ms", done.stderr)


def test_a_script_is_run_as_python_runs_it(program):
    arguments = ["-x", "--offset", "-1", "--", "--counts", "a b"]
    status, out, err = run("sub/show.py", *arguments)
    names = sorted(name for group in ("copies", "reductions") for name in GROUPS[group] if "." not in name)
    assert (status, err) == (0, "")
    assert out == f"__main__ {['sub/show.py', *arguments]} {program.parent} {names}\n"
    alone = python("sub/show.py", *arguments).stdout
    assert alone == out.replace(str(names), "[]")


def test_a_module_is_run_as_python_runs_it(program):
    (program.parent / "__init__.py").touch()
    arguments = ["-q", "--names", "x", "-3"]
    status, out, err = run("--names", "tile, broadcast_arrays", "-m", "sub.show", *arguments)
    assert (status, err) == (0, "")
    assert out == f"__main__ {[str(program), *arguments]} {Path.cwd()} ['broadcast_arrays', 'tile']\n"
    alone = python("-m", "sub.show", *arguments).stdout
    assert alone == out.replace("['broadcast_arrays', 'tile']", "[]")
    assert "'a', '-b'" in run("-msub.show", "a", "-b")[1]


def test_calls_are_counted(program):
    told = "bcast: numpy.tile: calls taken 1 (6 items, some ms), passed on 1 (some ms: no array 1)\n"
    status, _, err = run("--counts", program)
    assert (status, err[: len(told)]) == (0, told)  # NumPy calls ufuncs of its own
    assert err.splitlines()[-1].startswith("bcast: sums, means and deviations went to NumPy")
    for names in ("tile", "copies,ufuncs,sums"):
        assert "sums" not in run("--names", names, "--counts", program)[2]
    program.write_text(SHOW + "raise SystemExit(7)")
    status, _, err = run("--names", "tile", "--counts", program)
    assert (status, err) == (7, told)
    status, _, err = run("--names", "repeat,meshgrid", "--counts", program)
    hint = "--names chooses others"
    assert (status, err) == (7, f"bcast: none of repeat, meshgrid was called; {hint}\n")


def test_reasons_are_counted_by_function(program):
    program.write_text(
        "import numpy as np\n"
        "x = np.ones((3, 2))\n"
        "np.sum(x, 0), np.sum(x, 0, where=x > 1), np.sum(x, 0, where=x > 0), np.sum(x[:1], 0), np.sum([1, 2])\n"
        "np.repeat(x.view(np.matrix), 2), np.repeat(np.array([None]), 2), np.repeat(np.array([None, 1]), 2)\n"
    )
    status, _, err = run("--counts", "--names", "sum, repeat", program)
    assert status == 0
    assert err.splitlines() == [
        "bcast: numpy.repeat: calls taken 0, passed on 3 (some ms: subclass 1, dtype 2)",
        "bcast: numpy.sum: calls taken 1 (2 items, some ms), passed on 4 (some ms: no array 1, keyword 2, small 1)",
    ]


def test_the_help_says_which_names_have_to_be_given(capsys):
    with contextlib.suppress(SystemExit):
        main(["run", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "(default: copies,ufuncs,reductions)" in text
    for name in OTHER_NAMES:
        assert re.search(rf"other names: .*\b{name}\b", text), name
    with bcast.patched_numpy():
        assert [name for name in GROUPS if bcast.is_patched(name)] == list(DEFAULT_NAMES)
        assert not bcast.is_patched("broadcast_arrays")


def test_errors_are_the_programs(program):
    program.write_text("raise KeyError('mine')")
    status, out, err = run(program)
    assert (status, out) == (1, "")
    assert err.endswith("KeyError: 'mine'\n")


@posix
def test_an_interrupt_is_the_programs(program):
    program.write_text("import os, signal; os.kill(os.getpid(), signal.SIGINT)")
    code = "import signal, runpy; signal.signal(signal.SIGINT, signal.default_int_handler); "
    code += "runpy.run_module('bcast', run_name='__main__', alter_sys=True)"
    done = python("-c", code, "run", str(program))
    assert (done.returncode, done.stderr.splitlines()[-1]) == (-signal.SIGINT, "KeyboardInterrupt")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "expected a script, or -m and a module"),
        (["nope.py"], f"nope.py: {os.strerror(2)}"),
        (["-m", "nope.nope"], "`-m` expected the name of a module, got nope.nope: there is none"),
        (["--names", "cumsum", "x.py"], "`names` expected "),
    ],
)
def test_programs_that_do_not_run(folder, capsys, arguments, message):
    (folder / "x.py").write_text("1 / 0")
    with contextlib.suppress(SystemExit):
        assert main(["run", *arguments]) == 2
    out, err = capsys.readouterr()
    assert (out, err.startswith(f"bcast: error: {message}"), err.count("\n")) == ("", True, 1)


def test_the_program_stays_until_the_process_ends(program):
    program.write_text(
        "import atexit, os, pathlib, pickle, sys, threading, time, numpy as np\n"
        "class A: pass\n"
        "def end(name):\n"
        "    pickle.loads(pickle.dumps(A()))\n"
        "    print(name, type(np.tile).__name__, sys.argv[1:], np.tile(np.arange(2), 2).sum())\n"
        "def later():\n"
        "    threading.main_thread().join()\n"
        "    end('thread')\n"
        "atexit.register(end, 'exit')\n"
        "threading.Thread(target=later).start()\n"
        "os.chdir('/')\n"
        "assert pathlib.Path(__file__).is_file()\n"
    )
    status, out, err = run("--counts", "sub/show.py", "a")
    assert (status, out) == (0, "thread StandIn ['a'] 2\nexit StandIn ['a'] 2\n")
    assert err.splitlines()[0] == "bcast: numpy.tile: calls taken 2 (8 items, some ms), passed on 0"


@pytest.mark.usefixtures("program")
def test_a_folder_and_an_archive(folder):
    import zipfile

    (folder / "beside.py").touch()
    text = "import sys; print(__name__, sys.argv, sys.path[0])\ntry: import beside\nexcept ImportError: print('none')\n"
    (folder / "sub" / "__main__.py").write_text(text)
    with zipfile.ZipFile("sub.zip", "w") as archive:
        archive.writestr("__main__.py", text)
    for name in ("sub", "sub.zip"):
        assert run(name, "-x")[:2] == (0, f"__main__ {[str(folder / name), '-x']} {folder / name}\nnone\n")
    text = "import sys\nprint(sys.stdout.errors)\ntry: import beside\nexcept ImportError: print('none')\n"
    (folder / "sub" / "show.py").write_text(text)
    (folder / "sub" / "beside.py").touch()
    for variable, end in (("", ""), ("1", "none\n")):  # options of the interpreter are honoured
        environment = os.environ | {"PYTHONSAFEPATH": variable}
        assert run("sub/show.py", env=environment)[1] == python("sub/show.py", env=environment).stdout
        assert run("sub/show.py", env=environment)[1].endswith(end)
