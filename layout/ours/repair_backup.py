"""The backup of a repair: the old bytes of every file and the sum of the new, in one file of the log dir's root.

It is named after the plan's fingerprint, ``.logstore_repair.<16 digits>.json``; a broker ignores plain files. It is
durable before the first change, so after a crash the repair can always be undone. A check sum over its content shows
damage. ``logstore.repair`` writes and uses it. A repair changes these files and no others::

    orders-0/partition.metadata              of any replica
    recovery-point-offset-checkpoint ...     the offset checkpoints of the log dir
    meta.properties.tmp ...                  beside the whole file that each was to replace

Source: DESIGN §6; FACTS §1.1.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from layout import json_text, meta_properties
from layout.checkpoint import OFFSET_CHECKPOINTS
from layout.ours.staged_record import stays_below
from layout.partition_metadata import FILE_NAME as METADATA_FILE
from layout.scheme import REPAIR_BACKUP_PREFIX, REPAIR_BACKUP_SUFFIX

SCHEMA_VERSION: Final = 1
FORMAT: Final = "repair backup"
_DIGITS = 16

BROKER_TEMPORARY: Final = ".tmp"
"""Suffix of a file while a broker writes it (FACTS §2)."""

LEFTOVERS: Final = frozenset(f"{name}{BROKER_TEMPORARY}" for name in (meta_properties.FILE_NAME, *OFFSET_CHECKPOINTS))
"""Temporary files that may be removed, because the file that each was to replace can be checked."""

MISSING: Final = "missing"
"""Stands for the SHA-256 of a file that is not there."""

_SUM = re.compile(r"[0-9a-f]{64}")


def sum_of(data: bytes | None) -> str:
    """Give the SHA-256 of a file's bytes in hex, or ``missing`` for no file."""
    return MISSING if data is None else _sha256(data)


def is_sum(text: str) -> bool:
    """Whether a text can come from :func:`sum_of`."""
    return text == MISSING or _SUM.fullmatch(text) is not None


def is_repairable(path: str) -> bool:
    """Whether a path below a log dir is one of a file that a repair may change."""
    folder, _, name = path.rpartition("/")
    if not folder:
        return name in OFFSET_CHECKPOINTS or name in LEFTOVERS
    return stays_below(path) and name == METADATA_FILE


@dataclass(frozen=True, slots=True)
class KeptFile:
    """One file as it was before the repair.

    Attributes:
        path: below the log dir.
        before: its bytes; None: it was not there.
        after: SHA-256 of what the repair wrote, or ``missing``.
        inode: of the partition dir that holds it; None for a file of the log dir's root.
    """

    path: str
    before: bytes | None
    after: str
    inode: int | None = None


@dataclass(frozen=True, slots=True)
class RepairBackup:
    """The files that one repair changed in one log dir.

    Attributes:
        fingerprint: of the plan.
        made_ms: in ms since 1970.
        cluster_id: of the log dir; an undo in a log dir with another identity is refused.
        node_id: of the log dir.
        directory_id: of the log dir.
        files: in the order in which they were changed.
    """

    fingerprint: str
    made_ms: int
    cluster_id: str | None
    node_id: int | None
    directory_id: str | None
    files: tuple[KeptFile, ...]


def backup_file_name(fingerprint: str) -> str:
    """The name of the backup of a plan."""
    return f"{REPAIR_BACKUP_PREFIX}{fingerprint[:_DIGITS]}{REPAIR_BACKUP_SUFFIX}"


def is_backup_name(name: str) -> bool:
    """Whether a plain file in the root of a log dir is the backup of a repair."""
    return name.startswith(REPAIR_BACKUP_PREFIX) and name.endswith(REPAIR_BACKUP_SUFFIX)


def encode_backup(backup: RepairBackup) -> bytes:
    """Write a backup: indented JSON in ASCII, the old bytes as base64.

    Raises:
        DamagedFileError: the backup breaks a rule, so that :func:`parse_backup` would refuse it.
    """
    fields: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "fingerprint": backup.fingerprint,
        "made_ms": backup.made_ms,
        "cluster_id": backup.cluster_id,
        "node_id": backup.node_id,
        "directory_id": backup.directory_id,
        "files": [
            {
                "path": each.path,
                "before": None if each.before is None else base64.b64encode(each.before).decode("ascii"),
                "before_sha256": sum_of(each.before),
                "after_sha256": each.after,
                "inode": each.inode,
            }
            for each in backup.files
        ],
    }
    fields["check_sum"] = _check_sum(fields)
    written = (json.dumps(fields, indent=2) + "\n").encode("ascii")
    parse_backup(written)
    return written


def parse_backup(data: bytes) -> RepairBackup:
    """Read a backup, and check every rule.

    Raises:
        DamagedFileError: no JSON object, an unknown schema version, another check sum, a path that no repair changes,
            or a field that breaks a rule; all reasons at once.
    """
    reader = json_text.FieldReader.of_file(data, FORMAT, SCHEMA_VERSION)
    fields = reader.values
    if reader.text("check_sum") != _check_sum({key: value for key, value in fields.items() if key != "check_sum"}):
        reader.note("its check sum does not belong to what it says")
    files = tuple(_file(each.values, reader.reasons) for each in reader.objects("files"))
    backup = RepairBackup(
        reader.text("fingerprint"),
        reader.integer("made_ms", bits=64, least=0),
        reader.text("cluster_id") if fields.get("cluster_id") is not None else None,
        reader.integer("node_id") if fields.get("node_id") is not None else None,
        reader.text("directory_id") if fields.get("directory_id") is not None else None,
        files,
    )
    reader.check(FORMAT)
    return backup


def merged_backups(old: RepairBackup, new: Sequence[KeptFile]) -> RepairBackup:
    """Add the files of a second run of the same plan to a backup; files that it has already keep their older bytes."""
    known = {each.path for each in old.files}
    added = tuple(each for each in new if each.path not in known)
    return RepairBackup(
        old.fingerprint, old.made_ms, old.cluster_id, old.node_id, old.directory_id, (*old.files, *added)
    )


def _check_sum(fields: Mapping[str, object]) -> str:
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    return _sha256(text.encode("ascii"))


def _sha256(data: bytes) -> str:
    import hashlib  # which takes 4 ms to load, and this module is loaded wherever a log dir is read

    return hashlib.sha256(data).hexdigest()


def _file(fields: Mapping[str, object], reasons: list[str]) -> KeptFile:
    path, text, after, inode = (fields.get(key) for key in ("path", "before", "after_sha256", "inode"))
    before = None
    try:
        if text is not None:
            before = base64.b64decode(str(text), validate=True)
    except (binascii.Error, ValueError):
        reasons.append(f"{path!r:.60}: its old bytes are no base64")
    if not isinstance(path, str) or not is_repairable(path):
        reasons.append(f"{path!r:.60} is no file that a repair has business with")
    if sum_of(before) != fields.get("before_sha256") or not is_sum(str(after)):
        reasons.append(f"{path!r:.60}: its check sums do not belong to it")
    if inode is not None and not json_text.is_int(inode, 64):
        reasons.append(f"{path!r:.60}: inode is {inode!r:.40}")
        inode = None
    return KeptFile(str(path), before, str(after), inode)
