"""A backup gives back the very bytes, and one that is damaged or leads elsewhere is not believed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from layout import meta_properties
from layout.errors import DamagedFileError
from layout.ours import (
    BROKER_TEMPORARY,
    LEFTOVERS,
    MISSING,
    KeptFile,
    RepairBackup,
    backup_file_name,
    encode_backup,
    is_absolute,
    is_backup_name,
    is_repairable,
    is_sum,
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


@pytest.mark.parametrize(("path", "right"), [("/d", True), ("d", False), ("/d/../e", False), ("/", False)])
def test_a_log_dir_is_an_absolute_path_without_detours(path: str, right: bool) -> None:
    assert is_absolute(path) is right


def test_a_file_that_is_missing_has_a_sum_of_its_own() -> None:
    assert (sum_of(None), sum_of(b"")) == (MISSING, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
    assert is_sum(MISSING) and is_sum(sum_of(b"x"))
    assert not is_sum("0" * 63) and not is_sum("G" * 64)


def test_only_temporary_files_of_the_log_dirs_root_are_removable() -> None:
    assert f"{meta_properties.FILE_NAME}.tmp" in LEFTOVERS
    assert len(LEFTOVERS) == 5
    assert all(name.endswith(BROKER_TEMPORARY) and "/" not in name for name in LEFTOVERS)


@pytest.mark.parametrize(
    ("path", "right"),
    [
        ("t-0/partition.metadata", True),
        ("org/apache/t-0/partition.metadata", True),
        ("cleaner-offset-checkpoint", True),
        ("meta.properties.tmp", True),
        ("meta.properties", False),
        ("partition.metadata", False),
        ("t-0/cleaner-offset-checkpoint", False),
        ("t-0/00000000000000000000.log", False),
        ("../t-0/partition.metadata", False),
        ("/etc/partition.metadata", False),
        ("t-0/../../x/partition.metadata", False),
        ("", False),
    ],
)
def test_a_repair_changes_few_files_and_no_others(path: str, right: bool) -> None:
    assert is_repairable(path) is right
