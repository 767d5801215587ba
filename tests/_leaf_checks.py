"""The programs in C that check leaves, each leaf on its own: to compile and to run them."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SOURCES = HERE.parent / "src/bcast"

needs_fences = pytest.mark.skipif(sys.platform == "win32", reason="fences the buffers by mprotect")


def tool(*names):
    """Return the path of the first of some programs that is installed."""
    for path in map(shutil.which, names):
        if path:
            return path
    pytest.skip(f"needs {' or '.join(names)}")
    return None


def compiled(name, tmp_path, compiler, *options):
    """Compile one of the checks; return the path of the program."""
    if not SOURCES.exists():
        pytest.skip("needs the sources of bcast")
    program = tmp_path / name
    command = [compiler, "-std=c11", *options, f"-I{SOURCES}", str(HERE / f"{name}.c"), "-o", str(program)]
    subprocess.run(command, check=True)
    return str(program)


def checked(*command):
    """Run a check; return the names of the targets whose leaves it found right."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.split()
