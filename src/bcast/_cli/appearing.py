"""A file that appears under its name once it is whole. Until then it is private, and removed if the run ends early."""

import errno
import hashlib
import os
import platform
import re
import stat
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path

if sys.platform != "win32":
    import fcntl

__all__ = ["appearing"]

LINKS = 40  # in a row, as many as Linux follows
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
NO_DOMAIN = "0" * 16  # in the names of temporaries without a lock
ACCESS_LIST = "system.posix_acl_access"  # of Linux
TEMPORARY = re.compile(r"\.bcast-([0-9a-f]{16})-[0-9a-f]{16}\.tmp")


@contextmanager
def appearing(destination: str, tell: Callable[[str], object]) -> Iterator[FileIO]:
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
        _replaced(final)
        _remove_leftovers(final.parent, tell)
        path, file = _create(final.parent)
        try:
            yield file
            _set_permissions(file, final, _replaced(final))
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


def _replaced(path: Path) -> os.stat_result | None:
    """Check the file that will be replaced, and return its status; None if there is none."""
    try:
        entry = path.lstat()
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(entry.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(entry.st_mode):
        raise OSError(errno.EINVAL, "not a regular file")
    if sys.platform != "win32":
        _check_planted(entry, path.parent)
    if not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return entry


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
            if _lock(path, file):
                return path, file
        except OSError:  # from a file system without locks
            return path.rename(folder / _new_name(NO_DOMAIN)), file
        file.close()  # a run that looks for leftovers came first
        path.unlink(missing_ok=True)


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


def _lock(path: Path, file: FileIO) -> bool:
    """Lock a temporary file, unless another process holds it or it is gone; return whether it is locked."""
    if sys.platform == "win32":
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(path.lstat(), os.fstat(file.fileno()))
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
    if not stat.S_ISREG(entry.st_mode) or entry.st_uid != os.geteuid():
        return
    with FileIO(path, "r+", opener=_open) as file:
        if not _lock(path, file):
            return
        if here:
            path.unlink()
            tell(f"removed {path}, left by a run that was killed")
        else:
            tell(f"left {path} alone: a run that was killed made it, or one on another machine or mount")


# The permissions.


def _set_permissions(file: FileIO, path: Path, old: os.stat_result | None) -> None:
    """Give the file the permissions of the file that it replaces, or those of a new file."""
    if sys.platform == "win32":
        return
    mode = _new_permissions(path.parent) if old is None else _take_access_list(file, path, _take_owner(file, old))
    with suppress(OSError):  # from a file system without permissions
        os.fchmod(file.fileno(), mode)


def _take_owner(file: FileIO, old: os.stat_result) -> int:
    """Give the file the `old` one's owner and group, as far as allowed; return permissions that admit nobody else."""
    mode = old.st_mode & 0o777
    new = os.fstat(file.fileno())
    with suppress(OSError):  # only root may
        if new.st_uid != old.st_uid:
            os.fchown(file.fileno(), old.st_uid, -1)
    try:
        if new.st_gid != old.st_gid:
            os.fchown(file.fileno(), -1, old.st_gid)
    except OSError:  # the user is not in that group: give the file's group only what both the old group and others had
        both = mode >> 3 & mode & 0o007
        mode = mode & 0o700 | both << 3 | both
    return mode


def _take_access_list(file: FileIO, path: Path, mode: int) -> int:
    """Give the file the access list of the file at `path`, or none; return permissions that admit nobody else.

    Where there is a list, the permissions of the group are a mask over all of it, not those of the group.
    """
    if not hasattr(os, "getxattr"):
        return mode
    try:
        entries = os.getxattr(path, ACCESS_LIST)
    except OSError:  # it has none: what the folder's default has given the new file goes
        try:
            os.removexattr(file.fileno(), ACCESS_LIST)
        except OSError as error:
            return mode if error.errno in (errno.ENODATA, errno.ENOTSUP) else mode & 0o707
        return mode
    try:
        os.setxattr(file.fileno(), ACCESS_LIST, entries)
    except OSError:
        return mode & 0o707
    return mode


def _new_permissions(folder: Path) -> int:
    """Return the permissions of new files: those that the umask leaves, or those that the folder sets."""
    if hasattr(os, "O_TMPFILE"):
        with suppress(OSError):  # from a file system without unnamed files
            descriptor = os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o666)
            try:
                return stat.S_IMODE(os.fstat(descriptor).st_mode)
            finally:
                os.close(descriptor)
    umask = os.umask(0o077)
    os.umask(umask)
    return 0o666 & ~umask
