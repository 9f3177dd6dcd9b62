"""Log dirs laid out by another scheme, and back: every replica, and nothing that the scheme cannot hold.

# KIP516-12 KIP37-2
"""

from __future__ import annotations

from pathlib import Path

import pytest

from layout import meta_properties, partition_metadata
from layout.scheme import Scheme
from layout.topic import TopicPartition
from logstore import ChangeRefusedError, LogStoreError, NameTakenError, OfflineLogDirError
from logstore.namespaces import carry_out, convert, create_namespace, plan_convert
from logstore.scan import scan
from logstore.store import LogStore
from tests.logstore.changes import ORDERS, fill_store, lies, look, offsets, two_disks
from tests.logstore.engine import SHIPPED, fill, opened

ORDERS_PATH = f"51/{ORDERS.hex}_0"


def with_topics(folder: Path, scheme: str, *topics: str) -> list[Path]:
    """A broker with topics, in namespaces that were created."""
    paths = two_disks(folder, scheme)
    with opened(*paths) as store:
        for namespace in sorted({topic.rpartition(":")[0] for topic in topics} - {""}):
            if scheme == "namespaced":
                create_namespace(store, namespace)
        fill_store(store, *topics)
    return paths


def converted(paths: list[Path], *schemes: str) -> None:
    with opened(*paths) as store:
        for scheme in schemes:
            convert(store, Scheme(scheme))


@pytest.mark.parametrize("there", ["by-topic-id", "namespaced"])
def test_there_and_back_every_byte_is_as_it_was(tmp_path: Path, there: str) -> None:
    paths = with_topics(tmp_path, "flat", "orders", "clicks")
    before, of_offsets = look(paths), offsets(paths)
    converted(paths, there)
    assert look(paths) != before
    assert offsets(paths) == of_offsets
    converted(paths, "flat")
    assert look(paths) == before


def test_namespaces_survive_the_scheme_that_has_no_directories_for_them(tmp_path: Path) -> None:
    paths = with_topics(tmp_path, "namespaced", "orders", "org:clicks", "org:apache:views")
    before = look(paths)
    converted(paths, "by-topic-id")
    assert {path.parent.name for path in paths[0].rglob("*.log")} == {
        path.parent.name for path in paths[0].glob("*/*/*.log")
    }
    converted(paths, "namespaced")
    assert look(paths) == before


def test_a_namespace_is_in_every_log_dir_after_a_conversion_and_not_only_where_its_replicas_lie(tmp_path: Path) -> None:
    paths = two_disks(tmp_path, "by-topic-id")
    with opened(*paths) as store:
        first, second = (TopicPartition("org:apache:hits", partition) for partition in (0, 1))
        lies_in = store.create(first, ORDERS).log_dir
        convert(store, Scheme.NAMESPACED)
        other = store.create(second, ORDERS)  # in the log dir that has fewer, where no replica of the namespace lay
        assert (other.log_dir != lies_in, other.path) == (True, "org/apache/hits-1")


def test_the_open_store_finds_everything_at_its_new_place_and_goes_on(tmp_path: Path) -> None:
    paths = with_topics(tmp_path, "flat", "orders")
    with opened(*paths) as store:
        planned = convert(store, Scheme.BY_TOPIC_ID)
        assert (str(paths[0]), f"rename orders-0 to {ORDERS_PATH}") in list(planned.lines())
        assert store.get(TopicPartition("orders", 0)).path == ORDERS_PATH
        assert store.stage([TopicPartition("orders", 0)], "STALE_ID", "").refused == []
        (staged,) = store.staged()
        convert(store, Scheme.FLAT)
        assert store.get(TopicPartition("orders", 1)).path == "orders-1"
        assert store.restore(staged).path == "orders-0"
    assert lies(paths) == ["orders-0 in orders-0", "orders-1 in orders-1"]
    assert not (paths[0] / "51").exists()


def test_the_identity_keeps_all_but_the_scheme(tmp_path: Path) -> None:
    paths = with_topics(tmp_path, "flat", "orders")
    file = paths[0] / "meta.properties"
    file.write_bytes(file.read_bytes().replace(b"version=1", b"version=1\nother.key=kept") + b"another=one\n")
    before = meta_properties.parse(file.read_bytes())
    converted(paths, "by-topic-id")
    after = meta_properties.parse(file.read_bytes())
    assert (after.directory_id, after.other) == (before.directory_id, before.other)
    assert after.scheme == "by-topic-id"
    converted(paths, "by-topic-id")


def test_a_name_that_only_the_path_held_goes_into_the_file(tmp_path: Path) -> None:
    paths = with_topics(tmp_path, "flat", "orders")
    (paths[0] / "orders-0" / "partition.metadata").write_bytes(SHIPPED)
    for number in range(10):
        key_value = f"schema_version: 0\nid: {ORDERS}\nname: orders\npartition: {number + 2}"
        fill(paths[0] / f"orders-{number + 2}", SHIPPED if number % 2 else key_value.encode())
    converted(paths, "by-topic-id")
    read = partition_metadata.parse((paths[0] / ORDERS_PATH / "partition.metadata").read_bytes())
    assert (read.topic, read.partition) == ("orders", 0)
    with opened(*paths) as store:
        assert len(store) == 12
    assert [problem for problem in scan(str(paths[0])).rows.column("problem").to_pylist() if problem] == []


def test_a_staged_replica_gets_the_name_that_its_path_will_not_hold(tmp_path: Path) -> None:
    paths = with_topics(tmp_path, "flat", "orders")
    (paths[0] / "orders-0" / "partition.metadata").write_bytes(SHIPPED)
    with opened(*paths) as store:
        store.stage([TopicPartition("orders", 0)], "STALE_ID", "")
        convert(store, Scheme.BY_TOPIC_ID)
        assert store.restore(store.staged()[0]).path == ORDERS_PATH
    with opened(*paths) as store:
        assert store.get(TopicPartition("orders", 0)).path == ORDERS_PATH


def without_id(store: LogStore, paths: list[Path]) -> None:
    store.create(TopicPartition("clicks", 0), None)


def staged_without_id(store: LogStore, paths: list[Path]) -> None:
    store.create(TopicPartition("clicks", 0), None)
    store.stage([TopicPartition("clicks", 0)], "NO_ID", "")


def stray(store: LogStore, paths: list[Path]) -> None:
    fill(paths[1] / f"clicks-0.{'0' * 32}-stray")


def on_its_way(store: LogStore, paths: list[Path]) -> None:
    (paths[1] / f"orders-0.{'0' * 32}-future").mkdir()


def prefix_in_the_way(store: LogStore, paths: list[Path]) -> None:
    (paths[1] / "51").mkdir()


def same_id_twice(store: LogStore, paths: list[Path]) -> None:
    store.create(TopicPartition("clicks", 0), ORDERS, directory_id=store.log_dirs[0].identity.directory_id)


def same_id_on_the_other_disk(store: LogStore, paths: list[Path]) -> None:
    store.create(TopicPartition("clicks", 0), ORDERS, directory_id=store.log_dirs[1].identity.directory_id)


def offline(store: LogStore, paths: list[Path]) -> None:
    store.log_dirs[1].go_offline("its disk is broken")


@pytest.mark.parametrize(
    ("obstacle", "error", "text"),
    [
        (without_id, ChangeRefusedError, "1 of 2 replicas: clicks-0"),
        (staged_without_id, ChangeRefusedError, "what is staged could not come back"),
        (stray, ChangeRefusedError, r"there: clicks-0\.0+-stray \(a stray has its .*or move it out: 'logstore"),
        (on_its_way, ChangeRefusedError, "on their way"),
        (prefix_in_the_way, NameTakenError, "these names are taken: 51"),
        (same_id_twice, NameTakenError, r"disk-1/clicks-0 and .*disk-1/orders-0 would both become"),
        (same_id_on_the_other_disk, NameTakenError, r"disk-2/clicks-0 and .*disk-1/orders-0 would both become"),
        (offline, OfflineLogDirError, "needs every log dir"),
    ],
)
def test_what_the_scheme_cannot_hold_or_is_in_the_way_is_refused(
    tmp_path: Path, obstacle, error: type[Exception], text: str
) -> None:
    paths = with_topics(tmp_path, "flat", "orders")
    with opened(*paths) as store:
        obstacle(store, paths)
        before = look(paths)
        with pytest.raises(error, match=text):
            convert(store, Scheme.BY_TOPIC_ID)
        assert look(paths) == before


def test_flat_has_no_place_for_topics_in_namespaces(tmp_path: Path) -> None:
    for scheme in ("namespaced", "by-topic-id"):
        paths = with_topics(tmp_path / scheme, scheme, "orders", "org:clicks")
        with opened(*paths) as store, pytest.raises(ChangeRefusedError, match=r"1 of 2 replicas.*org:clicks-0"):
            convert(store, Scheme.FLAT)


def test_a_tier_that_would_be_taken_for_a_prefix_is_refused(tmp_path: Path) -> None:
    paths = with_topics(tmp_path, "namespaced", "51:orders")
    with opened(*paths) as store, pytest.raises(NameTakenError, match="taken: 51"):
        convert(store, Scheme.BY_TOPIC_ID)


def test_a_tier_and_a_partition_of_one_name_are_refused(tmp_path: Path) -> None:
    paths = with_topics(tmp_path, "by-topic-id", "a", "a-0:b")
    with opened(*paths) as store, pytest.raises(NameTakenError, match="taken: a-0"):
        convert(store, Scheme.NAMESPACED)


def test_replicas_of_which_nothing_says_the_topic_are_refused(tmp_path: Path) -> None:
    paths = with_topics(tmp_path, "by-topic-id", "orders")
    (paths[0] / ORDERS_PATH / "partition.metadata").write_bytes(SHIPPED)
    with opened(*paths) as store, pytest.raises(ChangeRefusedError, match=f"of which topic these are: {ORDERS_PATH}"):
        convert(store, Scheme.FLAT)


@pytest.mark.parametrize("stranger", ["51/stranger", "stranger"])
def test_strangers_are_left_alone_or_refused_where_their_directory_would_go(tmp_path: Path, stranger: str) -> None:
    paths = with_topics(tmp_path, "by-topic-id", "orders")
    (paths[0] / stranger).mkdir()
    with opened(*paths) as store:
        if "/" in stranger:
            with pytest.raises(ChangeRefusedError, match="51/stranger"):
                convert(store, Scheme.FLAT)
        else:
            convert(store, Scheme.FLAT)
    assert (paths[0] / stranger).is_dir()


def test_namespaces_without_topics_are_forgotten_and_the_plan_says_so(tmp_path: Path) -> None:
    paths = with_topics(tmp_path, "namespaced", "orders")
    with opened(*paths) as store:
        create_namespace(store, "org:apache")
        before = look(paths)
        planned = plan_convert(store, Scheme.FLAT)
        assert "no topic is in org, org:apache" in planned.notes[0]
        assert look(paths) == before, "planning changes nothing"
        carry_out(store, planned)
    assert not (paths[0] / "org").exists()


def test_log_dirs_of_several_schemes_come_to_the_same_one(tmp_path: Path) -> None:
    paths = with_topics(tmp_path, "flat", "orders", "clicks")
    converted(paths[:1], "by-topic-id")
    converted(paths, "namespaced")
    assert lies(paths) == [f"{name} in {name}" for name in ("clicks-0", "orders-0", "clicks-1", "orders-1")]


def test_a_real_brokers_log_dir_is_never_converted(new_log_dir, tmp_path: Path) -> None:
    real = new_log_dir(tmp_path / "real").identity()
    real.replica("orders-0")
    before = look([real.path])
    with opened(real.path) as store, pytest.raises(LogStoreError, match="a real broker's log dir"):
        convert(store, Scheme.BY_TOPIC_ID)
    assert look([real.path]) == before
