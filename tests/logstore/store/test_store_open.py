"""Log dirs open together or not at all, are recovered first, and answer by partition and by topic ID."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from layout.ids import DirectoryId, TopicId
from layout.scheme import UNCLEAN_FILE
from layout.topic import TopicPartition
from logstore import (
    ChangeRefusedError,
    KafkaError,
    LogDirInUseError,
    NotALogDirError,
    OfflineLogDirError,
    UnknownReplicaError,
)
from logstore.fs import Disk
from logstore.log_dir import FallbackRecords, LogDir
from logstore.store import LogStore, OpenStore, recover_all
from logstore.store.open import open_log_dirs
from tests.logstore.engine import (
    ORDERS,
    ORDERS_ID,
    OTHER_ID,
    SHIPPED,
    DiskThat,
    contents,
    fill,
    formatted,
    identity,
    open_descriptors,
    opened,
    picture,
)
from tests.patience import PATIENCE_S


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    found = [formatted(tmp_path / name, number) for number, name in enumerate("ab")]
    fill(found[0] / "orders-0")
    fill(found[1] / "payments-3", SHIPPED.replace(str(ORDERS_ID).encode(), str(OTHER_ID).encode()))
    fill(found[1] / "old-0", None)
    return found


def test_what_lies_in_the_log_dirs_is_found_by_partition_and_by_topic_id(paths: list[Path]) -> None:
    with opened(*paths) as store:
        assert store.get(ORDERS).log_dir == str(paths[0])
        assert store.get(ORDERS).topic_id == ORDERS_ID
        assert store.find(TopicPartition("orders", 1)) is None
        assert (store.topic_of(OTHER_ID), store.topic_of(TopicId.random(lambda n: b"x" * n))) == ("payments", None)
        assert len(store) == 3
        assert {str(replica.partition) for replica in store.replicas()} == {"orders-0", "payments-3", "old-0"}
        with pytest.raises(UnknownReplicaError, match="no log dir of this store has a live replica of orders-9"):
            store.get(TopicPartition("orders", 9))


def test_a_real_brokers_log_dirs_are_a_store_as_well(log_dir: Any) -> None:
    log_dir.replica("orders-0")
    with opened(log_dir.path) as store:
        assert store.get(ORDERS).topic_id == ORDERS_ID


@pytest.mark.parametrize(
    ("partition", "topic_id", "answer"),
    [
        (ORDERS, ORDERS_ID, KafkaError.NONE),
        (ORDERS, OTHER_ID, KafkaError.INCONSISTENT_TOPIC_ID),
        (ORDERS, None, KafkaError.NONE),
        (ORDERS, TopicId.ZERO, KafkaError.NONE),
        (TopicPartition("old", 0), ORDERS_ID, KafkaError.NONE),
        (TopicPartition("orders", 9), None, KafkaError.UNKNOWN_TOPIC_OR_PARTITION),
        (TopicPartition("orders", 9), TopicId.ZERO, KafkaError.UNKNOWN_TOPIC_OR_PARTITION),
        (TopicPartition("orders", 9), ORDERS_ID, KafkaError.UNKNOWN_TOPIC_ID),
        (TopicPartition("new", 0), ORDERS_ID, KafkaError.UNKNOWN_TOPIC_ID),
    ],
)
def test_requests_are_fenced_by_topic_id_and_those_by_name_go_on(
    paths: list[Path], partition: TopicPartition, topic_id: TopicId | None, answer: KafkaError
) -> None:
    # KIP516-8; FACTS §4.4
    with opened(*paths) as store:
        assert store.fence(partition, topic_id) == answer


def test_the_numbers_are_kafkas() -> None:
    # FACTS §4.1
    assert [*(103, 100, 56)] == [
        KafkaError.INCONSISTENT_TOPIC_ID,
        KafkaError.UNKNOWN_TOPIC_ID,
        KafkaError.KAFKA_STORAGE_ERROR,
    ]


def test_replicas_of_a_disk_that_failed_answer_so_and_the_others_go_on(paths: list[Path]) -> None:
    # FACTS §1.5
    disk = DiskThat(errno.EIO, below=paths[0])
    with opened(*paths, disk=disk) as store:
        disk.fails = {"rename"}
        with pytest.raises(OfflineLogDirError):
            store.stage([ORDERS], "x", "")
        assert list(store.offline) == [str(paths[0])]
        assert store.fence(ORDERS, ORDERS_ID) == KafkaError.KAFKA_STORAGE_ERROR
        assert store.fence(ORDERS) == KafkaError.KAFKA_STORAGE_ERROR
        with pytest.raises(OfflineLogDirError):
            store.find(ORDERS)
        assert store.fence(TopicPartition("payments", 3), OTHER_ID) == KafkaError.NONE
        assert store.get(TopicPartition("payments", 3)).path == "payments-3"
        assert len(list(store.replicas())) == 3
    with opened(*paths) as store:
        assert store.get(ORDERS).path == "orders-0", "opening it again brings it back"


def test_reading_all_again_does_not_forget_what_lies_on_a_disk_that_failed(paths: list[Path]) -> None:
    with opened(*paths) as store:
        store.log_dirs[0].go_offline("it failed")
        store.reload()
        assert store.fence(ORDERS, ORDERS_ID) == KafkaError.KAFKA_STORAGE_ERROR
        with pytest.raises(OfflineLogDirError):
            store.create(ORDERS, ORDERS_ID)
        assert len(store) == 3


def test_a_log_dir_that_cannot_be_read_any_more_is_offline_and_not_empty(paths: list[Path]) -> None:
    with opened(*paths) as store:
        (paths[0] / "meta.properties").unlink()
        store.reload()
        assert list(store.offline) == [str(paths[0])]
        assert store.fence(ORDERS, ORDERS_ID) == KafkaError.KAFKA_STORAGE_ERROR


def test_a_store_opens_without_arrow(paths: list[Path]) -> None:
    code = (
        "import sys; from logstore import LogStore; "
        "store = LogStore.open(sys.argv[1:]); print(len(store), 'pyarrow' in sys.modules); store.close()"
    )
    ran = subprocess.run([sys.executable, "-c", code, *map(str, paths)], capture_output=True, text=True, check=True)
    assert ran.stdout == "3 False\n"


def test_what_changed_on_the_disk_is_seen_when_all_is_read_again(paths: list[Path]) -> None:
    with opened(*paths) as store:
        fill(paths[0] / "new-0")
        assert store.find(TopicPartition("new", 0)) is None
        store.reload()
        assert store.get(TopicPartition("new", 0)).log_dir == str(paths[0])


def test_one_log_dir_that_fails_while_it_is_opened_is_offline_from_the_start(paths: list[Path]) -> None:
    (paths[0] / ".lock").unlink()
    with opened(*paths, disk=DiskThat(errno.EIO, {"create"}, paths[0])) as store:
        assert list(store.offline) == [str(paths[0])]
        assert [log_dir.path for log_dir in store.log_dirs] == [str(paths[1])]
        assert store.get(TopicPartition("payments", 3)).log_dir == str(paths[1])


def test_a_partition_that_is_live_in_two_log_dirs_is_a_duplicate(paths: list[Path]) -> None:
    # FACTS §1.7
    fill(paths[1] / "orders-0")
    with opened(*paths) as store:
        assert [replica.log_dir for replica in store.duplicates] == [str(paths[1])]
        assert store.get(ORDERS).log_dir == str(paths[0])


def test_a_log_dir_is_found_by_its_directory_id(paths: list[Path]) -> None:
    with opened(*paths) as store:
        wanted = identity(1).directory_id
        assert wanted is not None
        assert store.log_dir_of(wanted).path == str(paths[1])
        with pytest.raises(UnknownReplicaError, match=r"no log dir of this store has directory\.id"):
            store.log_dir_of(DirectoryId.from_halves(5, 5))


def test_a_store_holds_all_locks_until_it_is_closed(paths: list[Path]) -> None:
    store = opened(*paths)
    for path in paths:
        with pytest.raises(LogDirInUseError):
            LogDir.open(str(path))
    store.close()
    store.close()
    for path in paths:
        LogDir.open(str(path)).close()


def test_a_store_that_cannot_be_read_gives_its_locks_back_and_leaves_the_marks(
    paths: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    (paths[0] / UNCLEAN_FILE).touch()

    def fails(*_: object, **__: object) -> None:
        raise MemoryError

    descriptors = open_descriptors()
    monkeypatch.setattr("logstore.store.open.scan_live", fails)
    with pytest.raises(MemoryError):
        opened(*paths)
    assert open_descriptors() == descriptors
    assert (paths[0] / UNCLEAN_FILE).exists()
    monkeypatch.undo()
    opened(*paths).close()
    assert not (paths[0] / UNCLEAN_FILE).exists()


def test_looking_never_waits_for_a_change(paths: list[Path]) -> None:
    with opened(*paths) as store:
        seen: list[object] = []
        with store.changing:

            def look() -> None:
                seen.extend([store.find(ORDERS), store.fence(ORDERS), store.topic_of(ORDERS_ID), len(store)])

            thread = threading.Thread(target=look)
            thread.start()
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
        assert seen[1:] == [KafkaError.NONE, "orders", 3]


def test_one_directory_given_twice_is_refused(paths: list[Path]) -> None:
    with pytest.raises(ChangeRefusedError, match="give it once"):
        opened(paths[0], paths[0])


def test_a_store_opens_with_the_defaults_of_a_broker(paths: list[Path]) -> None:
    with LogStore.open([str(path) for path in paths]) as store:
        assert store.settings.by_scope == {}
        assert store.fallback.folder is None


def test_no_descriptor_is_left_behind(paths: list[Path]) -> None:
    before = open_descriptors()
    with opened(*paths) as store:
        store.reload()
    assert open_descriptors() == before


def test_a_store_that_is_abandoned_gives_its_locks_back_and_writes_nothing(paths: list[Path]) -> None:
    before = open_descriptors()
    store = opened(*paths)
    store.create(TopicPartition("new", 0), ORDERS_ID)
    pictures = [picture(path, but=()) for path in paths]
    store.abandon()
    assert [picture(path, but=()) for path in paths] == pictures
    assert any((path / UNCLEAN_FILE).exists() for path in paths)
    assert open_descriptors() == before
    with opened(*paths) as store:
        assert len(store) == 4
    assert not any((path / UNCLEAN_FILE).exists() for path in paths)


UNIQUE = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def three_log_dirs(tmp_path: Path) -> list[str]:
    return [str(formatted(tmp_path / name, number)) for number, name in enumerate("abc")]


def closed(log_dirs: list[LogDir]) -> list[str]:
    for log_dir in log_dirs:
        log_dir.close()
    return [log_dir.path for log_dir in log_dirs]


def test_all_are_open_in_the_order_given(three_log_dirs: list[str]) -> None:
    opened, offline = open_log_dirs(three_log_dirs[::-1], Disk())
    assert (closed(opened), offline) == (three_log_dirs[::-1], {})


@pytest.mark.parametrize("other", ["{}", "{}/", "{}/.", "{}/../a", "link"])
def test_two_paths_that_are_one_directory_are_refused_before_any_lock_is_taken(
    three_log_dirs: list[str], tmp_path: Path, other: str
) -> None:
    # FACTS §1.5
    (tmp_path / "link").symlink_to(three_log_dirs[0])
    (Path(three_log_dirs[0]) / ".lock").unlink()
    second = str(tmp_path / "link") if other == "link" else other.format(three_log_dirs[0])
    with pytest.raises(ChangeRefusedError, match="are one log dir: give it once"):
        open_log_dirs([three_log_dirs[0], second], Disk())
    assert not (Path(three_log_dirs[0]) / ".lock").exists()


@pytest.mark.parametrize(
    ("change", "reason"),
    [({"node_id": 2}, "node id is 2"), ({}, r"directory.id .* is also that of")],
)
def test_log_dirs_of_different_brokers_and_copies_of_one_are_refused_and_unlocked(
    three_log_dirs: list[str], tmp_path: Path, change: dict[str, int], reason: str
) -> None:
    formatted(tmp_path / "x", 0 if not change else 9, **change)
    descriptors = open_descriptors()
    with pytest.raises(ChangeRefusedError, match=f"not one broker's: .*{reason}"):
        open_log_dirs([*three_log_dirs, str(tmp_path / "x")], Disk())
    assert open_descriptors() == descriptors
    closed(open_log_dirs(three_log_dirs, Disk())[0])


def test_a_refusal_leaves_the_mark_of_a_log_dir_that_was_not_recovered(
    three_log_dirs: list[str], tmp_path: Path
) -> None:
    (Path(three_log_dirs[0]) / UNCLEAN_FILE).touch()
    formatted(tmp_path / "x", 9, node_id=2)
    with pytest.raises(ChangeRefusedError):
        open_log_dirs([three_log_dirs[0], str(tmp_path / "x")], Disk())
    assert (Path(three_log_dirs[0]) / UNCLEAN_FILE).exists()


def test_one_that_is_in_use_stops_all_and_the_others_are_unlocked_again(three_log_dirs: list[str]) -> None:
    descriptors = open_descriptors()
    with LogDir.open(three_log_dirs[2]), pytest.raises(LogDirInUseError):
        open_log_dirs(three_log_dirs, Disk())
    assert open_descriptors() == descriptors
    closed(open_log_dirs(three_log_dirs, Disk())[0])


@pytest.mark.parametrize("what", ["absent", "a file", "not formatted"])
def test_one_that_is_no_log_dir_stops_all(three_log_dirs: list[str], tmp_path: Path, what: str) -> None:
    other = tmp_path / "x"
    if what == "a file":
        other.write_text("x")
    elif what == "not formatted":
        other.mkdir()
    with pytest.raises(NotALogDirError):
        open_log_dirs([*three_log_dirs, str(other)], Disk())


def test_a_path_that_is_none_is_an_error_and_no_traceback(three_log_dirs: list[str]) -> None:
    # Kafka's own LogManagerTest.testCreateLogWithInvalidLogDir
    with pytest.raises(NotALogDirError):
        open_log_dirs([*three_log_dirs, "\0"], Disk())


@pytest.mark.parametrize("damage", ["lock", "identity"])
def test_one_whose_disk_fails_is_offline_with_the_reason_and_the_others_are_open(
    three_log_dirs: list[str], damage: str
) -> None:
    # FACTS §1.5
    disk: Disk = Disk()
    if damage == "lock":
        Path(three_log_dirs[1], ".lock").unlink(missing_ok=True)
        for path in (three_log_dirs[0], three_log_dirs[2]):
            Path(path, ".lock").touch()
        disk = DiskThat(errno.EIO, {"create"})
    else:
        Path(three_log_dirs[1], "meta.properties").unlink()
        os.mkfifo(Path(three_log_dirs[1], "meta.properties"))
    opened, offline = open_log_dirs(three_log_dirs, disk)
    assert closed(opened) == [three_log_dirs[0], three_log_dirs[2]]
    assert list(offline) == [three_log_dirs[1]]


def test_where_every_disk_fails_there_is_nothing_to_open(three_log_dirs: list[str]) -> None:
    for path in three_log_dirs:
        Path(path, ".lock").unlink(missing_ok=True)
    with pytest.raises(OfflineLogDirError, match=r"no log dir can be used: .*Input/output error"):
        open_log_dirs(three_log_dirs, DiskThat(errno.EIO, {"create"}))
    with pytest.raises(OfflineLogDirError, match="none was given"):
        open_log_dirs([], Disk())


def test_only_log_dirs_that_came_to_no_clean_end_are_recovered(three_log_dirs: list[str]) -> None:
    for path in three_log_dirs:
        Path(path, f"orders-0.{UNIQUE}-delete").mkdir()
    Path(three_log_dirs[1], UNCLEAN_FILE).touch()
    opened, _ = open_log_dirs(three_log_dirs, Disk())
    recover_all(opened, FallbackRecords(None))
    closed(opened)
    left = [Path(path, f"orders-0.{UNIQUE}-delete").exists() for path in three_log_dirs]
    assert left == [True, False, True]
    assert not Path(three_log_dirs[1], UNCLEAN_FILE).exists()


def test_one_whose_disk_fails_while_it_is_recovered_does_not_stop_the_others(three_log_dirs: list[str]) -> None:
    for path in three_log_dirs[:2]:
        Path(path, f"orders-0.{UNIQUE}-delete").mkdir()
        Path(path, UNCLEAN_FILE).touch()
    opened, _ = open_log_dirs(three_log_dirs, DiskThat(errno.EIO, {"rmdir"}, Path(three_log_dirs[0])))
    recover_all(opened, FallbackRecords(None))
    assert [log_dir.offline is not None for log_dir in opened] == [True, False, False]
    closed(opened)
    assert Path(three_log_dirs[0], UNCLEAN_FILE).exists()
    assert not Path(three_log_dirs[1], f"orders-0.{UNIQUE}-delete").exists()


def test_an_interrupt_between_two_log_dirs_unlocks_what_was_open(three_log_dirs: list[str], monkeypatch: Any) -> None:
    real, count = LogDir.open, []

    def interrupted(path: str, **options: Any) -> LogDir:
        count.append(path)
        if len(count) == 3:
            raise KeyboardInterrupt
        return real(path, **options)

    descriptors = open_descriptors()
    monkeypatch.setattr(LogDir, "open", interrupted)
    with pytest.raises(KeyboardInterrupt):
        open_log_dirs(three_log_dirs, Disk())
    assert open_descriptors() == descriptors


def test_an_open_store_answers_and_changes_no_replica(paths: list[Path]) -> None:
    before = [contents(path) for path in paths]
    with OpenStore.open([str(path) for path in paths]) as store:
        assert store.get(ORDERS).topic_id == ORDERS_ID
        assert len(store) == 3
    assert [contents(path) for path in paths] == before


@pytest.mark.parametrize("kind", [str, Path])
def test_a_single_path_is_one_log_dir(tmp_path: Path, kind: Callable[[object], str | Path]) -> None:
    path = formatted(tmp_path / "x")
    for given in (kind(path), [kind(path)]):
        with LogStore.open(given) as store:
            assert [log_dir.path for log_dir in store.log_dirs] == [str(path)]
    with pytest.raises(NotALogDirError, match="/nowhere"):
        LogStore.open("/nowhere")
