"""Files that are there whole or not at all, and folders with one writer, by the rules of the command (docs/outputs.md)."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

UNFINISHED = ".unfinished"
_MOST_LINKS = 40
# A name may have 255 bytes, and the name beside it has more.
_MOST_OF_A_NAME = 50


def write_whole(path: str | os.PathLike[str], write: Callable[[IO[bytes]], Any]) -> None:
    """Writes a file so that it is there whole or not at all, whatever happens meanwhile. A pipe or a device is
    written into, and stays what it is."""
    target = _target(Path(path))
    old = target.stat() if target.exists() else None
    if old is not None and (not stat.S_ISREG(old.st_mode) or _is_descriptor(target)):
        with os.fdopen(os.open(target, os.O_WRONLY | os.O_APPEND | os.O_NOCTTY), "wb") as stream:
            write(stream)
        return
    if old is not None and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    # Made by O_EXCL, for its owner only.
    handle, name = tempfile.mkstemp(UNFINISHED, f".{target.name[:_MOST_OF_A_NAME]}.", target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
            file.flush()
            os.fchmod(handle, 0o666 & ~_umask() if old is None else stat.S_IMODE(old.st_mode) & 0o777)
            os.fsync(handle)
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def lock(path: Path) -> int:
    """Locks a file, which is made where it is missing and never written to, until the descriptor is closed.
    `BlockingIOError` says who holds it."""
    _trust_all(path)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as why:
        holder = _holder(os.fstat(handle).st_ino)
        os.close(handle)
        raise BlockingIOError(errno.EWOULDBLOCK, holder) from why
    return handle


def _target(path: Path) -> Path:
    """Where a path leads."""
    for _ in range(_MOST_LINKS):
        _trust_all(path)
        path = path.parent.resolve() / path.name
        _trust_all(path)
        if not path.is_symlink() or _is_descriptor(path):
            return path
        path = path.parent / os.readlink(path)
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))


def _is_descriptor(path: Path) -> bool:
    """What looks like a link there is what a process has open."""
    return path.parts[1:2] == ("proc",) and path.is_symlink()


def _trust_all(path: Path) -> None:
    """Refuses what somebody else made in a folder where everybody may make something."""
    path = Path(os.path.abspath(path))
    for part in (path, *path.parents):
        if os.path.lexists(part) and not _trusted(part.parent.stat(), part.lstat()):
            what = f"user {part.lstat().st_uid} made it, in a folder where everybody may; choose another folder"
            raise PermissionError(errno.EACCES, what, str(part))


def _trusted(folder: os.stat_result, found: os.stat_result) -> bool:
    own = [str(os.geteuid())] + [os.environ.get("SUDO_UID", "") for _ in range(os.geteuid() == 0)]
    everybodys = stat.S_ISVTX | stat.S_IWOTH
    return folder.st_mode & everybodys != everybodys or found.st_uid == folder.st_uid or str(found.st_uid) in own


def _umask() -> int:
    """Of this process. umask(2) returns it only by setting another, for all threads."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return 0o077
    return next((int(line.split()[1], 8) for line in lines if line.startswith("Umask:")), 0o077)


def _holder(inode: int) -> str:
    """Who has locked a file, as far as the kernel says."""
    try:
        words = [line.split() for line in Path("/proc/locks").read_text(encoding="ascii").splitlines()]
    except OSError:
        words = []
    pids = [line[4] for line in words if line[1] == "FLOCK" and line[5].endswith(f":{inode}")]
    return f"process {pids[0]}" if pids else "another process"
