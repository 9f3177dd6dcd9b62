"""Says what this user may not read in a log dir, and its broker perhaps may: of the disk nothing is known then.

A broker runs as the owner of its log dir, as far as is known from here. What its owner may not read either, or what
belongs to somebody else, is closed to the broker too, and a finding; but nothing is closed to a broker that runs as
root. The log dir itself is closed for now whoever owns it: a mount point that is root's says nothing about its broker.
"""

from __future__ import annotations

import os
import stat

from layout.scheme import STAGING_DIR

_ROOT = 0
_NO_BROKERS = ("..", STAGING_DIR)
"""Where the path of something begins that only this program reads."""


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
