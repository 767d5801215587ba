"""A file that appears under its name when it is whole; until then it is private, and gone if its run ends early."""

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

LINKS = 40  # in a row; as many as Linux follows
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
NO_DOMAIN = "0" * 16  # in the names of temporaries without a lock
TEMPORARY = re.compile(r"\.bcast-([0-9a-f]{16})-[0-9a-f]{16}\.tmp")


@contextmanager
def appearing(destination: str, tell: Callable[[str], object]) -> Iterator[FileIO]:
    """Give a new file beside `destination`, which takes its name and place in the end, or is removed on failure.

    Nobody else can open the file before it is whole. It then gets the permissions of the file that it replaces, or else
    those of any new file.

    Parameters
    ----------
    destination : str
        The name. Links are followed as `open` follows them, but not those that another user may have planted.
    tell : callable
        Gets a line on each temporary file that a killed run has left in the same folder, and that is removed now.

    Yields
    ------
    io.FileIO
        The file, empty, to read and to write.

    Raises
    ------
    OSError
        If the file cannot be made, or cannot take its place; with `destination` as its name.
    """
    try:
        final = _resolve(destination)
        _replaced(final)
        _remove_leftovers(final.parent, tell)
        path, file = _create(final.parent)
        try:
            yield file
            _set_permissions(file, final.parent, _replaced(final))
            if sys.platform == "win32":  # which renames no open file
                file.close()
            path.replace(final)
        except BaseException as error:
            traceback.clear_frames(error.__traceback__)  # of maps: Windows removes no file that is mapped
            with suppress(OSError):
                file.close()
            path.unlink(missing_ok=True)
            raise
        file.close()
    except OSError as error:
        error.filename = destination  # the name that the user knows
        raise


def _resolve(destination: str) -> Path:
    """Follow the links at the end of a name, as open() does: to write what they point to."""
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
    """Check what will be replaced; return None if that is nothing."""
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
    """Refuse what may be there to have others write elsewhere, or what its owner can read.

    The rule is that of Linux's `protected_symlinks` and `protected_regular`, whether they are on or not.
    """
    shared, parent = stat.S_ISVTX | stat.S_IWOTH, folder.stat()
    if parent.st_mode & shared == shared and entry.st_uid not in (os.geteuid(), parent.st_uid):
        raise PermissionError(errno.EACCES, "another user's, in a folder where everybody can make files")


# The temporary. Its run holds a lock on it until the end, which the system drops with a killed run.


def _create(folder: Path) -> tuple[Path, FileIO]:
    """Make the temporary, private from the start."""
    while True:
        path = folder / _new_name(_lock_domain(folder))
        file = FileIO(path, "x+", opener=_open)
        try:
            if _lock(path, file):
                return path, file
        except OSError:  # of a file system without locks
            return path.rename(folder / _new_name(NO_DOMAIN)), file
        file.close()  # a run that looks for leftovers was quicker
        path.unlink(missing_ok=True)


def _new_name(domain: str) -> str:
    return f".bcast-{domain}-{os.urandom(8).hex()}.tmp"


def _lock_domain(folder: Path) -> str:
    """Identify the processes that see each other's locks: those of this machine, since it started, by one mount."""
    if sys.platform == "win32":
        return NO_DOMAIN
    try:
        machine = BOOT_ID.read_text()
    except OSError:  # there is none but on Linux
        machine = platform.node()
    return hashlib.sha256(f"{machine} {folder.stat().st_dev}".encode()).hexdigest()[:16]


def _open(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o600)


def _lock(path: Path, file: FileIO) -> bool:
    """Lock a temporary, unless another process holds it or it is gone."""
    if sys.platform == "win32":
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(path.lstat(), os.fstat(file.fileno()))
    except (BlockingIOError, FileNotFoundError):
        return False


def _remove_leftovers(folder: Path, tell: Callable[[str], object]) -> None:
    """Remove the temporaries of killed runs."""
    if sys.platform == "win32":  # without locks, they look like those of living runs
        return
    with suppress(OSError):  # of a folder in which files can be made, but not listed
        for path in folder.iterdir():
            match = TEMPORARY.fullmatch(path.name)
            if match and match[1] != NO_DOMAIN:
                with suppress(OSError):
                    _remove_leftover(path, match[1] == _lock_domain(folder), tell)


def _remove_leftover(path: Path, here: bool, tell: Callable[[str], object]) -> None:
    """Remove a temporary of this user's that nobody holds, unless a lock on it might not be seen `here`."""
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


def _set_permissions(file: FileIO, folder: Path, old: os.stat_result | None) -> None:
    """Give the file the permissions of the one that it replaces, or those of a new one."""
    if sys.platform == "win32":
        return
    mode = _new_permissions(folder) if old is None else _take_owner(file, old)
    with suppress(OSError):  # of a file system that knows no permissions
        os.fchmod(file.fileno(), mode)


def _take_owner(file: FileIO, old: os.stat_result) -> int:
    """Give the file another one's owner and group, as far as allowed; return permissions that let nobody else in."""
    mode = old.st_mode & 0o777
    new = os.fstat(file.fileno())
    with suppress(OSError):  # only root may
        if new.st_uid != old.st_uid:
            os.fchown(file.fileno(), old.st_uid, -1)
    try:
        if new.st_gid != old.st_gid:
            os.fchown(file.fileno(), -1, old.st_gid)
    except OSError:  # of a group that is not the user's: another one gets what both it and all others had
        both = mode >> 3 & mode & 0o007
        mode = mode & 0o700 | both << 3 | both
    return mode


def _new_permissions(folder: Path) -> int:
    """Return the permissions of new files: those that the umask leaves, or that the folder has for them."""
    if hasattr(os, "O_TMPFILE"):
        with suppress(OSError):  # of a file system that has no files without a name
            descriptor = os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o666)
            try:
                return stat.S_IMODE(os.fstat(descriptor).st_mode)
            finally:
                os.close(descriptor)
    umask = os.umask(0o077)
    os.umask(umask)
    return 0o666 & ~umask
