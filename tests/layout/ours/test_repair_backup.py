"""A backup gives back the very bytes, and one that is damaged or leads elsewhere is not believed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from layout.errors import DamagedFileError
from layout.ours import (
    MISSING,
    KeptFile,
    RepairBackup,
    backup_file_name,
    encode_backup,
    is_backup_name,
    merged_backups,
    parse_backup,
    sum_of,
)

FILES = (
    KeptFile("t-0/partition.metadata", None, sum_of(b"new"), 5),
    KeptFile("cleaner-offset-checkpoint", b"\0\xff\n", sum_of(b"")),
    KeptFile("meta.properties.tmp", b"half", MISSING),
)
BACKUP = RepairBackup("ab" * 32, 1000, "C", 1, None, FILES)


def test_a_backup_reads_back_as_it_was_written() -> None:
    assert parse_backup(encode_backup(BACKUP)) == BACKUP


def test_its_name_says_which_plan_it_belongs_to() -> None:
    assert backup_file_name(BACKUP.fingerprint) == ".logstore_repair.abababababababab.json"
    assert is_backup_name(backup_file_name(BACKUP.fingerprint)) and not is_backup_name("orders-0")


def test_a_second_run_adds_files_and_takes_none_of_the_old_bytes_away() -> None:
    more = (KeptFile("meta.properties.tmp", b"newer", MISSING), KeptFile("u-0/partition.metadata", b"", MISSING, 6))
    assert merged_backups(BACKUP, more).files == (*FILES, more[1])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda f: f["files"][0].update(path="../x/partition.metadata"), "business"),
        (lambda f: f["files"][0].update(path="meta.properties"), "business"),
        (lambda f: f["files"][1].update(before="????"), "no base64"),
        (lambda f: f["files"][1].update(before="AAAA"), "do not belong to it"),
        (lambda f: f["files"][0].update(after_sha256="x"), "do not belong to it"),
        (lambda f: f["files"][0].update(inode="5"), "inode"),
        (lambda f: f.update(files=None), "files: expected an array, found null"),
        (lambda f: f.update(made_ms=1), "check sum"),
        (lambda f: f.update(schema_version=9), "schema version 1 only"),
    ],
)
def test_a_backup_that_was_changed_is_refused(change: Callable[[dict[str, Any]], Any], said: str) -> None:
    fields = json.loads(encode_backup(BACKUP))
    change(fields)
    with pytest.raises(DamagedFileError, match=said):
        parse_backup(json.dumps(fields).encode())


@pytest.mark.parametrize("cut", [0, 1, 100, -3])
def test_a_backup_that_was_cut_short_is_refused(cut: int) -> None:
    with pytest.raises(DamagedFileError):
        parse_backup(encode_backup(BACKUP)[:cut])
