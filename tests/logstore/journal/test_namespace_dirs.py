"""The directories of namespaces, also those that a disk lacks because it was offline. KIP37-2, KIP37-3."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from layout.topic import TopicPartition
from logstore import NamespaceClashError, OfflineLogDirError
from logstore.journal import (
    check_no_tier,
    find_namespace_dirs,
    is_namespace_dir,
    list_namespace_dirs,
    make_missing_namespace_dirs,
    namespace_at,
    namespace_dir,
    with_parents,
)
from logstore.log_dir import LogDir
from logstore.namespaces import create_namespace
from tests.logstore.changes import fill_store, two_disks
from tests.logstore.engine import DiskThat, opened


def tier(path: Path) -> Path:
    path.mkdir(parents=True)
    (path / ".logstore_tier").write_bytes(b"")
    return path


def test_a_namespace_directory_is_recognized_by_its_marker_alone(tmp_path: Path) -> None:
    path = two_disks(tmp_path)[0]
    tier(path / "org")
    tier(path / "org" / "a-1")
    (path / "org" / "a-2").mkdir()
    (path / "orders-0" / "x").mkdir(parents=True)
    (path / "odd" / ".logstore_tier").mkdir(parents=True)
    with LogDir.open(str(path)) as log_dir:
        assert list_namespace_dirs(log_dir) == find_namespace_dirs(log_dir) == ["org", "org/a-1"]
        found = [name for name in log_dir.root.directories() if is_namespace_dir(log_dir.root, name)]
        assert found == ["org"]


def test_a_partition_cannot_have_the_directory_of_a_namespace_on_whatever_disk(tmp_path: Path) -> None:
    paths = two_disks(tmp_path)
    tier(paths[1] / "org")
    tier(paths[1] / "org" / "a-1")
    (paths[0] / "b-1").write_text("a file in the way")
    with LogDir.open(str(paths[0])) as first, LogDir.open(str(paths[1])) as second:
        for free in ("org:a-2", "a-1", "b-1", "org:below:a-1"):
            topic, _, number = free.rpartition("-")
            check_no_tier([first, second], TopicPartition(topic, int(number)))
        with pytest.raises(NamespaceClashError, match=f"{paths[1]} has that namespace"):
            check_no_tier([first, second], TopicPartition("org:a", 1))
        second.go_offline("its disk is broken")
        check_no_tier([first, second], TopicPartition("org:a", 1))


@pytest.mark.parametrize("scheme", ["flat", "by-topic-id"])
def test_other_schemes_have_none(tmp_path: Path, scheme: str) -> None:
    path = two_disks(tmp_path, scheme)[0]
    tier(path / "org")
    with LogDir.open(str(path)) as log_dir:
        assert list_namespace_dirs(log_dir) == []


def test_a_link_is_no_tier(tmp_path: Path) -> None:
    one, other = two_disks(tmp_path)
    tier(other / "org")
    (one / "org").symlink_to(other / "org")
    with LogDir.open(str(one)) as log_dir:
        assert list_namespace_dirs(log_dir) == []


def test_names_and_paths_are_two_spellings_of_one_thing() -> None:
    assert (namespace_at("org/apache"), namespace_dir("org:apache")) == ("org:apache", "org/apache")
    assert with_parents(["b/c/d", "a"]) == ["a", "b", "b/c", "b/c/d"]


def test_a_disk_that_was_offline_gets_the_tiers_that_it_lacks(tmp_path: Path) -> None:
    one, other = two_disks(tmp_path)
    with opened(one) as store:
        create_namespace(store, "org:apache")
    with opened(one, other) as store:
        assert (other / "org" / "apache" / ".logstore_tier").is_file()
        fill_store(store, "org:apache:orders")
        assert store.get(TopicPartition("org:apache:orders", 1)).log_dir == str(other)
    assert not (other / ".logstore_unclean").exists()


def test_a_missing_directory_is_made_once(tmp_path: Path) -> None:
    one, other = two_disks(tmp_path)
    tier(one / "org")
    with LogDir.open(str(one)) as first, LogDir.open(str(other)) as second:
        make_missing_namespace_dirs([first, second])
        make_missing_namespace_dirs([first, second])
        assert list_namespace_dirs(first) == list_namespace_dirs(second) == ["org"]


def test_what_is_in_the_way_of_a_tier_is_left_and_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    one, other = two_disks(tmp_path)
    (other / "a-1").mkdir()
    with opened(one) as store:
        create_namespace(store, "a-1:b")
    opened(one, other).close()
    assert list((other / "a-1").iterdir()) == []
    assert "a-1 is in the way of namespace a-1" in caplog.text


def test_a_disk_that_takes_no_directory_more_is_opened_all_the_same(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one, other = two_disks(tmp_path)
    with opened(one) as store:
        create_namespace(store, "org")
    with opened(one, other, disk=DiskThat(errno.ENOSPC, {"mkdir"}, below=other)) as store:
        assert store.offline == {}
    assert "No space left" in caplog.text
    opened(one, other).close()
    assert (other / "org").is_dir()


def test_a_disk_that_cannot_be_listed_is_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with LogDir.open(str(two_disks(tmp_path)[0])) as log_dir:
        monkeypatch.setattr("logstore.journal.namespace_dirs._below", fails)
        with pytest.raises(OfflineLogDirError, match="tiers of namespaces cannot be listed"):
            list_namespace_dirs(log_dir)
