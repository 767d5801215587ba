"""What killed runs leave: the next one removes it, and nothing else."""

import contextlib
import errno
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from _commands import NOBODY, as_user, files, halfway, posix, program, python, report_of, root, succeed, temporaries

from bcast._cli import appearing, npy_files

if sys.platform != "win32":
    import fcntl

APPLY = ["apply", "in.npy", "out.npy", "--shape", "9,3"]
NEW = np.broadcast_to(np.arange(3.0), (9, 3))


@pytest.fixture(autouse=True)
def folder(folder):
    """Put an array into it."""
    np.save("in.npy", np.arange(3.0))
    return folder


def kill_one(out="other.npy"):
    """Leave the temporary of a killed run; give its name."""
    assert python(program("_halfway.py"), "kill", "in.npy", out, "--shape", "9,3").returncode == -signal.SIGKILL
    (name,) = temporaries()
    return name


def own_name():
    return Path(appearing._new_name(appearing._lock_domain(Path())))


def removed(folder, *names):
    return {f"bcast: removed {folder / name}, left by a run that was killed" for name in names}


@posix
def test_leftovers_are_removed(run, folder):
    names = [kill_one("out.npy"), own_name()]
    shutil.copy(*names)
    Path(names[1]).chmod(0o644)  # as just before it would have appeared
    status, _, err = run(*APPLY)
    assert status == 0
    assert set(err.splitlines()) == removed(folder, *names)
    assert files() == ["in.npy", "out.npy"]
    assert run(*APPLY)[2] == ""


@posix
def test_folders_are_removed(run, folder):
    """Those of arrays in Zarr's format; a link in them leads nowhere."""
    name = own_name()
    (name / "c" / "0").mkdir(parents=True)
    (name / "zarr.json").write_text("{}")
    (folder / "kept").mkdir()
    (folder / "kept" / "file").touch()
    (name / "c" / "kept").symlink_to(folder / "kept")
    status, _, err = run(*APPLY)
    assert status == 0
    assert set(err.splitlines()) == removed(folder, name)
    assert files() == ["in.npy", "kept", "out.npy"]
    assert files("kept") == ["file"]


@posix
def test_leftovers_are_removed_before_a_run_that_fails(run, folder, monkeypatch):
    """They may be what the disk has no room for."""
    name = kill_one()

    def reserve(*_):
        assert temporaries() != [name]
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(npy_files, "_reserve", reserve)
    status, _, err = run(*APPLY)
    assert status == 2
    assert err.splitlines() == [*removed(folder, name), f"bcast: error: out.npy: {os.strerror(errno.ENOSPC)}"]
    assert files() == ["in.npy"]


@posix
def test_leftovers_where_links_lead_to(run, folder):
    (folder / "there").mkdir()
    name = kill_one()
    Path(name).rename(folder / "there" / name)
    (folder / "out.npy").symlink_to("there/real.npy")
    status, _, err = run(*APPLY)
    assert status == 0
    assert set(err.splitlines()) == removed(folder / "there", name)
    assert files("there") == ["real.npy"]


def make_link():
    Path("kept").touch()
    own_name().symlink_to("kept")


# What is none of ours, or may be of a run that lives.
KEPT = {
    "without_lock": lambda: Path(f".bcast-{'0' * 16}-{'1' * 16}.tmp").touch(),
    "longer": lambda: Path(f"{own_name()}~").touch(),
    "upper_case": lambda: Path(str(own_name()).upper().replace("BCAST", "bcast").replace("TMP", "tmp")).touch(),
    "shorter": lambda: Path(f".bcast-{'1' * 16}.tmp").touch(),
    "visible": lambda: Path(str(own_name())[1:]).touch(),
    "other": lambda: Path(".bcast-notes.tmp").touch(),
    "folder_without_lock": lambda: Path(f".bcast-{'0' * 16}-{'1' * 16}.tmp").mkdir(),
    "link": make_link,
    "dangling_link": lambda: own_name().symlink_to("nowhere"),
    "pipe": lambda: os.mkfifo(own_name()),
}


@posix
@pytest.mark.parametrize("make", KEPT.values(), ids=KEPT)
def test_what_is_not_ours_stays(run, make):
    make()
    before = files()
    assert run(*APPLY)[::2] == (0, "")
    assert files() == [*before, "out.npy"]


@root
def test_leftovers_of_other_users_stay(run):
    name = kill_one()
    os.chown(name, NOBODY, NOBODY)
    assert run(*APPLY)[::2] == (0, "")
    assert files() == [name, "in.npy", "out.npy"]


@posix
@pytest.mark.parametrize("elsewhere", ["machine", "mount"])
def test_leftovers_from_elsewhere_are_named_but_stay(run, folder, monkeypatch, elsewhere):
    """From another machine, this one before it was restarted, or another mount: no lock of theirs may be seen here."""
    name = kill_one()
    if elsewhere == "machine":
        (folder / "boot_id").write_text("another")
        monkeypatch.setattr(appearing, "BOOT_ID", folder / "boot_id")
    else:
        entry = list(folder.stat())
        entry[2] += 1
        stat = Path.stat
        monkeypatch.setattr(
            Path, "stat", lambda path, **how: os.stat_result(entry) if path == folder else stat(path, **how)
        )
    before = files()
    status, _, err = run(*APPLY)
    assert status == 0
    why = "a run that was killed made it, or one on another machine or mount"
    assert err == f"bcast: left {folder / name} alone: {why}\n"
    assert files() == [*before, "out.npy"]


@posix
@pytest.mark.parametrize("here", [True, False], ids=["here", "elsewhere"])
def test_temporaries_of_living_runs_stay(run, monkeypatch, here):
    command = [sys.executable, program("_halfway.py"), "wait", "in.npy", "other.npy", "--shape", "9,3"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as process:
        assert process.stdout.readline() == "halfway\n"
        (name,) = temporaries()
        if not here:
            monkeypatch.setattr(appearing, "_lock_domain", lambda _: "1" * 16)
        assert run(*APPLY)[::2] == (0, "")
        assert temporaries() == [name]
        process.communicate("\n")
    assert process.returncode == 0
    np.testing.assert_array_equal(np.load("other.npy"), NEW)
    assert files() == ["in.npy", "other.npy", "out.npy"]


def find(name, domain):
    """Look for leftovers as another run would, here or elsewhere."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(appearing, "_lock_domain", lambda _: domain)
        told = []
        appearing._remove_leftovers(Path.cwd(), told.append)
        assert [name in line for line in told] == [True]


def hold(name, stack):
    """Hold a temporary, as another run does for a moment."""
    descriptor = os.open(name, os.O_RDWR)
    stack.callback(os.close, descriptor)
    fcntl.flock(descriptor, fcntl.LOCK_EX)


# What another run does to a temporary that is not locked yet.
MOMENTS = {
    "removed": lambda name, _: find(name, appearing._lock_domain(Path())),
    "looked_at_from_elsewhere": lambda name, _: find(name, "1" * 16),
    "locked": hold,
    "locked_and_removed": lambda name, stack: (hold(name, stack), Path(name).unlink()),
}


@posix
@pytest.mark.parametrize("act", MOMENTS.values(), ids=MOMENTS)
def test_another_run_finds_the_temporary_before_it_is_locked(run, monkeypatch, act):
    """The first one takes another name, where it must, and leaves none."""
    flock = fcntl.flock

    def lock(file, how):
        monkeypatch.setattr(fcntl, "flock", flock)
        act(*temporaries(), stack)
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", lock)
    with contextlib.ExitStack() as stack:
        succeed(run, *APPLY[1:])
    np.testing.assert_array_equal(np.load("out.npy"), NEW)
    assert files() == ["in.npy", "out.npy"]


@posix
def test_file_system_without_locks(run, monkeypatch):
    """Nobody can tell whether such a run lives, so its temporary is never taken for a leftover."""

    def refuse(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", refuse)
        halfway(patch, lambda: seen.extend(temporaries()))
        seen = []
        succeed(run, *APPLY[1:])
    (name,) = seen
    assert name.startswith(f".bcast-{'0' * 16}-")
    assert files() == ["in.npy", "out.npy"]
    Path(name).touch()
    assert run(*APPLY)[::2] == (0, "")
    assert name in files()


@posix
def test_machine_without_a_boot_id(run, folder, monkeypatch):
    """As on macOS: its name stands for it."""
    before = appearing._lock_domain(folder)
    monkeypatch.setattr(appearing, "BOOT_ID", folder / "none")
    assert before != appearing._lock_domain(folder) == appearing._lock_domain(folder)
    leftover = own_name()
    leftover.touch()
    assert run(*APPLY)[2].splitlines() == [*removed(folder, leftover)]


@root
def test_folder_that_may_not_be_listed(shared):
    shared.chmod(0o733)
    assert as_user(NOBODY, *APPLY)[::2] == (0, "")
    assert files() == ["in.npy", "out.npy"]


@posix
@pytest.mark.parametrize("count", [20, pytest.param(500, marks=pytest.mark.drill)], ids=["short", "long"])
def test_runs_killed_at_random_moments(count):
    """Runs beside those that are killed succeed, and the next one leaves no file but theirs."""
    assert report_of("_interrupted.py", "kills", count, 1)["wrong"] == []
