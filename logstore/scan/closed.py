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
    """What the owner of a log dir may not do in a directory of it, by its permissions."""

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
    mode = status.st_mode
    allowed = (mode >> 6 if status.st_uid == log_dir.st_uid else mode >> 3 | mode) & 0o7
    if log_dir.st_uid == _ROOT or status.st_uid not in (_ROOT, log_dir.st_uid) or allowed == 0o7:
        return Denied.NOTHING
    try:
        os.getxattr(directory, "system.posix_acl_access")
    except OSError:
        return Denied.CHANGE if allowed & 0o5 == 0o5 else Denied.READ
    return Denied.NOTHING


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
