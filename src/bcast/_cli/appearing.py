"""A file that appears under its name once it is whole. Until then it is private, and removed if the run ends early."""

import errno
import hashlib
import os
import platform
import re
import shutil
import stat
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path

from bcast._cli.permissions import new_permissions, set_permissions

if sys.platform != "win32":
    import fcntl

__all__ = ["appearing", "appearing_folder"]

LINKS = 40  # in a row, as many as Linux follows
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
NO_DOMAIN = "0" * 16  # in the names of temporaries without a lock
TEMPORARY = re.compile(r"\.bcast-([0-9a-f]{16})-[0-9a-f]{16}\.tmp")


@contextmanager
def appearing(destination: str, tell: Callable[[str], object], clobber: bool = True) -> Iterator[FileIO]:
    """Make a new file beside `destination`, which takes that name in the end, or is removed on failure.

    No other user can open the file before it is whole. It then gets the permissions of the file that it replaces, or
    those of any new file.

    Parameters
    ----------
    destination : str
        The name. Links are followed as `open` follows them, except those that another user may have planted.
    tell : callable
        Called with a line for each temporary file that a killed run has left in the same folder: whether it was
        removed or left alone.
    clobber : bool, optional
        Whether the file may replace one that has the name already.

    Yields
    ------
    io.FileIO
        The file, empty, to read and to write.

    Raises
    ------
    OSError
        If the file cannot be made or cannot take its place; its file name is `destination`.
    """
    try:
        final = _resolve(destination)
        _replaced(final, clobber)
        _remove_leftovers(final.parent, tell)
        path, file = _create(final.parent)
        try:
            yield file
            set_permissions(file, final, _replaced(final, clobber))
            if sys.platform == "win32":  # which renames no open file
                file.close()
            path.replace(final)
        except BaseException as error:
            traceback.clear_frames(error.__traceback__)  # they may hold maps; Windows removes no mapped file
            with suppress(OSError):
                file.close()
            path.unlink(missing_ok=True)
            raise
        file.close()
    except OSError as error:
        error.filename = destination  # the name that the user knows
        raise


@contextmanager
def appearing_folder(destination: str, tell: Callable[[str], object]) -> Iterator[Path]:
    """Make a new folder beside `destination`, which takes that name in the end, or is removed on failure.

    Parameters
    ----------
    destination : str
        The name, which must be free: nothing replaces a folder at once.
    tell : callable
        As for `appearing`.

    Yields
    ------
    Path
        The folder, empty and private.

    Raises
    ------
    OSError
        If the folder cannot be made or cannot take its name; its file name is `destination`.
    """
    try:
        final = _resolve(destination.rstrip(os.sep))
        _check_free(final)
        _remove_leftovers(final.parent, tell)
        path, lock = _create_folder(final.parent)
        try:
            yield path
            if sys.platform != "win32":
                path.chmod(path.stat().st_mode & stat.S_ISGID | new_permissions(final.parent, 0o777))
            _check_free(final)
            path.rename(final)
        except BaseException as error:
            traceback.clear_frames(error.__traceback__)
            shutil.rmtree(path, ignore_errors=True)
            raise
        finally:
            if lock is not None:
                os.close(lock)
    except OSError as error:
        error.filename = destination
        raise


def _resolve(destination: str) -> Path:
    """Follow the links at the end of a name, as open() does, to the file that they point to."""
    if os.path.split(destination)[1] in ("", os.curdir, os.pardir):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if sys.platform == "win32":
        return Path(os.path.realpath(destination))
    path = Path(destination)
    for _ in range(LINKS):
        folder = Path(os.path.realpath(path.parent))
        path = folder / path.name
        try:
            entry = path.lstat()
        except FileNotFoundError:
            return path
        if not stat.S_ISLNK(entry.st_mode):
            return path
        _check_planted(entry, folder)
        path = folder / path.readlink()
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _replaced(path: Path, clobber: bool) -> os.stat_result | None:
    """Check the file that will be replaced, and return its status; None if there is none."""
    try:
        entry = path.lstat()
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(entry.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not clobber:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
    if not stat.S_ISREG(entry.st_mode):
        raise OSError(errno.EINVAL, "not a regular file")
    if sys.platform != "win32":
        _check_planted(entry, path.parent)
    if not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return entry


def _check_free(path: Path) -> None:
    """Refuse a name that something has."""
    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, f"{os.strerror(errno.EEXIST)}, and no folder is replaced: remove it first")


def _check_planted(entry: os.stat_result, folder: Path) -> None:
    """Refuse an entry that another user may have planted, to redirect what is written or to read it.

    The rule is that of Linux's `protected_symlinks` and `protected_regular`, whether these are on or not.
    """
    shared, parent = stat.S_ISVTX | stat.S_IWOTH, folder.stat()
    if parent.st_mode & shared == shared and entry.st_uid not in (os.geteuid(), parent.st_uid):
        raise PermissionError(errno.EACCES, "another user's, in a folder where everybody can make files")


# The temporary file. Its run holds a lock on it until the end; if the run is killed, the system drops the lock.


def _create(folder: Path) -> tuple[Path, FileIO]:
    """Make the temporary file, private from the start."""
    while True:
        path = folder / _new_name(_lock_domain(folder))
        file = FileIO(path, "x+", opener=_open)
        try:
            if _lock(path, file.fileno()):
                return path, file
        except OSError:  # from a file system without locks
            return path.rename(folder / _new_name(NO_DOMAIN)), file
        file.close()  # a run that looks for leftovers came first
        path.unlink(missing_ok=True)


def _create_folder(folder: Path) -> tuple[Path, int | None]:
    """Make the temporary folder, private from the start, and return what holds the lock on it."""
    while True:
        domain = _lock_domain(folder)
        path = folder / _new_name(domain)
        path.mkdir(0o700)
        if domain == NO_DOMAIN:
            return path, None
        try:
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except FileNotFoundError:  # a run that looks for leftovers came first
            continue
        except OSError:
            path.rmdir()
            raise
        try:
            if _lock(path, lock):
                return path, lock
        except OSError:  # from a file system without locks
            return path.rename(folder / _new_name(NO_DOMAIN)), lock
        os.close(lock)
        shutil.rmtree(path, ignore_errors=True)


def _new_name(domain: str) -> str:
    return f".bcast-{domain}-{os.urandom(8).hex()}.tmp"


def _lock_domain(folder: Path) -> str:
    """Identify the processes that see each other's locks: those that use one mount of this machine, since its start."""
    if sys.platform == "win32":
        return NO_DOMAIN
    try:
        machine = BOOT_ID.read_text()
    except OSError:  # only Linux has one
        machine = platform.node()
    return hashlib.sha256(f"{machine} {folder.stat().st_dev}".encode()).hexdigest()[:16]


def _open(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o600)


def _lock(path: Path, descriptor: int) -> bool:
    """Lock a temporary file, unless another process holds it or it is gone; return whether it is locked."""
    if sys.platform == "win32":
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except (BlockingIOError, FileNotFoundError):
        return False


def _remove_leftovers(folder: Path, tell: Callable[[str], object]) -> None:
    """Remove the temporary files of killed runs."""
    if sys.platform == "win32":  # without locks, they look like those of running processes
        return
    with suppress(OSError):  # from a folder in which files can be made, but not listed
        for path in folder.iterdir():
            match = TEMPORARY.fullmatch(path.name)
            if match and match[1] != NO_DOMAIN:
                with suppress(OSError):
                    _remove_leftover(path, match[1] == _lock_domain(folder), tell)


def _remove_leftover(path: Path, here: bool, tell: Callable[[str], object]) -> None:
    """Remove a temporary file of this user's that no process holds, unless its lock might not be visible `here`."""
    entry = path.lstat()
    if not (stat.S_ISREG(entry.st_mode) or stat.S_ISDIR(entry.st_mode)) or entry.st_uid != os.geteuid():
        return
    whole = stat.S_ISDIR(entry.st_mode)
    lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW if whole else os.O_RDWR | os.O_NOFOLLOW)
    try:
        if not _lock(path, lock):
            return
        if not here:
            tell(f"left {path} alone: a run that was killed made it, or one on another machine or mount")
            return
        if whole and not any(path.iterdir()):  # of a run that lives and has just begun, or of none
            path.rmdir()
            return
        if whole:
            shutil.rmtree(path)
        else:
            path.unlink()
        tell(f"removed {path}, left by a run that was killed")
    finally:
        os.close(lock)
