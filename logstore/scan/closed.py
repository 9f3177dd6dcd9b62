"""Says what this user may not read in a log dir, and its broker perhaps may: of the disk nothing is known then.

A broker runs as the owner of its log dir, as far as is known from here. What its owner may not read either, or what
belongs to somebody else, is closed to the broker too, and a finding; but nothing is closed to a broker that runs as
root. The log dir itself is closed for now whoever owns it: a mount point that is root's says nothing about its broker.
"""

from __future__ import annotations

import os
import stat
from enum import IntEnum

from layout.scheme import STAGING_DIR

_ROOT = 0
_NO_BROKERS = ("..", STAGING_DIR)
"""Where the path of something begins that only this program reads."""


class Denied(IntEnum):
    """What the owner of a log dir may not do in a directory or with a file of it, by their permissions."""

    NOTHING = 0
    CHANGE = 1
    READ = 2


def denied_to_owner(directory: int, log_dir: os.stat_result) -> Denied:
    """Say what the owner of a log dir, as whom its broker runs, may not do in one of its directories.

    Nothing is denied to root. Nothing is said where an access control list may allow what the permissions do not, and
    the owner may be in any group. What belongs to a third user may be that of the broker, to which a group opens the
    log dir: it is the directories of root that nobody meant to leave.

    Args:
        directory: its open descriptor.
        log_dir: status of the log dir.
    """
    status = os.fstat(directory)
    allowed = _allowed(status, log_dir)
    if log_dir.st_uid == _ROOT or status.st_uid not in (_ROOT, log_dir.st_uid) or allowed == 0o7:
        return Denied.NOTHING
    if _has_access_list(directory):
        return Denied.NOTHING
    return Denied.CHANGE if allowed & 0o5 == 0o5 else Denied.READ


def knows_owner(log_dir: os.stat_result) -> bool:
    """Whether this user, root or the owner of a log dir, can tell what the owner may not do with files in it."""
    return log_dir.st_uid != _ROOT and os.geteuid() in (_ROOT, log_dir.st_uid)


def judge_file(directory: int, name: str, log_dir: os.stat_result, *, is_written: bool) -> tuple[bool, Denied]:
    """Say whether this user may read a file, and what the owner of the log dir, as whom its broker runs, may not do.

    It is known as :func:`denied_to_owner` knows it of directories. The system is asked once about most files, because
    there may be a million.

    Args:
        directory: open descriptor of the directory in which the file lies.
        name: of the file, in the directory.
        log_dir: status of the log dir, whose owner is known (:func:`knows_owner`).
        is_written: whether a broker opens it to write.
    """
    owner = log_dir.st_uid
    if os.geteuid() == owner:
        if is_written and may(directory, name, os.R_OK | os.W_OK):
            return True, Denied.NOTHING
        may_read = may(directory, name)
        is_denied = is_written and may_read and not os.fstatvfs(directory).f_flag & os.ST_RDONLY
        return may_read, Denied.CHANGE if is_denied else Denied.NOTHING
    try:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except OSError:
        return may(directory, name), Denied.NOTHING
    # A file server may take root for nobody, who may read what all others may.
    may_read = bool(status.st_mode & stat.S_IROTH) or may(directory, name)
    allowed, needed = _allowed(status, log_dir), 0o6 if is_written else 0o4
    if allowed & needed == needed or status.st_uid not in (_ROOT, owner):
        return may_read, Denied.NOTHING
    if _has_access_list(f"/proc/self/fd/{directory}/{name}"):
        return may_read, Denied.NOTHING
    return may_read, Denied.CHANGE if allowed & 0o4 else Denied.READ


def may(directory: int, name: str, what: int = os.R_OK) -> bool:
    """Whether the system lets this user read a file, or what else is asked; no file is opened for it."""
    return os.access(name, what, dir_fd=directory, effective_ids=True)


def _allowed(status: os.stat_result, log_dir: os.stat_result) -> int:
    mode = status.st_mode
    return (mode >> 6 if status.st_uid == log_dir.st_uid else mode >> 3 | mode) & 0o7


def _has_access_list(place: int | str) -> bool:
    try:
        os.getxattr(place, "system.posix_acl_access")
    except OSError:
        return False
    return True


def is_closed(log_dir: str, name: str = ".") -> bool:
    """Whether this user may not read a directory or file, and the broker's own user perhaps may. Never raises.

    Args:
        log_dir: its path.
        name: path below the log dir, as the rows of a scan have it; for what is staged beside it that begins with
            ``../``.
    """
    path = os.path.normpath(f"{log_dir}/{name}")
    try:
        status, owner = os.lstat(path), os.stat(log_dir).st_uid
    except PermissionError:
        return name == "." or is_closed(log_dir, os.path.dirname(name) or ".")
    except (OSError, ValueError):
        return False
    if not stat.S_ISDIR(status.st_mode) and not stat.S_ISREG(status.st_mode):
        return False
    needed = os.R_OK | os.X_OK if stat.S_ISDIR(status.st_mode) else os.R_OK
    if os.access(path, needed, effective_ids=True):
        return False
    if name == "." or name.split("/", maxsplit=1)[0] in _NO_BROKERS or owner == _ROOT:
        return True
    return status.st_uid == owner != os.geteuid()
