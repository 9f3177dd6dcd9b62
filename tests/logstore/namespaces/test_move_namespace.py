"""A whole namespace under another name: all that is in it goes along, on every disk, and nothing is ever merged.

# KIP37-2 KIP37-3 KIP37-5
"""

from __future__ import annotations

from pathlib import Path

import pytest

from layout import partition_metadata
from layout.errors import InvalidNameError
from layout.topic import TopicPartition
from logstore import (
    DELETE_DELAY,
    STALE_DELAY,
    ChangeRefusedError,
    InvalidNamespaceError,
    LogStoreError,
    NamespaceClashError,
    NameTakenError,
    OfflineLogDirError,
    Settings,
)
from logstore.namespaces import carry_out, create_namespace, list_namespaces, move_namespace, plan_move_namespace
from logstore.scan import scan
from logstore.store import LogStore
from tests.logstore.changes import fill_store, lies, look, offsets, two_disks
from tests.logstore.engine import opened, read_offsets, write_offsets

TOPICS = ("orders", "org:clicks", "org:apache:views")


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    """Topics in the default namespace, in ``org`` and in ``org:apache``; ``org:empty`` and ``net`` hold nothing."""
    paths = two_disks(tmp_path)
    with opened(*paths) as store:
        for namespace in ("org:apache", "org:empty", "net"):
            create_namespace(store, namespace)
        fill_store(store, *TOPICS)
    return paths


@pytest.mark.parametrize("target", ["com:shop", "net", "organ"])
def test_all_that_is_in_it_goes_along_on_every_disk(paths: list[Path], target: str) -> None:
    folder = target.replace(":", "/")
    with opened(*paths) as store:
        move_namespace(store, "org", target)
        names = list_namespaces(store)
        assert {f"{target}", f"{target}:apache", f"{target}:empty"} <= set(names)
        assert not [name for name in names if name == "org" or name.startswith("org:")]
        assert store.get(TopicPartition(f"{target}:apache:views", 1)).path == f"{folder}/apache/views-1"
        kept = {(each.partition, each.path) for each in store.replicas()}
        store.reload()
        assert {(each.partition, each.path) for each in store.replicas()} == kept
    assert lies(paths) == [
        line
        for number in (0, 1)
        for line in sorted(
            [
                f"orders-{number} in orders-{number}",
                f"org:clicks-{number} in {folder}/clicks-{number}",
                f"org:apache:views-{number} in {folder}/apache/views-{number}",
            ],
            key=lambda each: Path(each.rpartition(" in ")[2]).parts,
        )
    ]
    assert offsets(paths)[f"{target}:apache:views-1"] == 41
    assert not [name for name in offsets(paths) if name.startswith("org:")]
    for path in paths:
        assert (path / folder / "empty" / ".logstore_tier").is_file()
        assert not (path / "org").exists()
        assert [problem for problem in scan(str(path)).rows.column("problem").to_pylist() if problem] == []
    read = partition_metadata.parse((paths[1] / folder / "clicks-1" / "partition.metadata").read_bytes())
    assert (read.topic, read.partition) == (f"{target}:clicks", 1)


def test_there_and_back_every_byte_is_as_it_was(paths: list[Path]) -> None:
    before = look(paths)
    with opened(*paths) as store:
        move_namespace(store, "org", "net")
        move_namespace(store, "net", "org")
        create_namespace(store, "net")
    assert look(paths) == before


def test_the_tier_above_stays_and_the_namespaces_beside_it_too(paths: list[Path]) -> None:
    with opened(*paths) as store:
        move_namespace(store, "org:apache", "org:other")
        assert list_namespaces(store) == ["net", "org", "org:empty", "org:other"]
        assert {each.partition.topic for each in store.replicas()} == {"orders", "org:clicks", "org:other:views"}


def test_by_topic_id_only_names_change(tmp_path: Path) -> None:
    paths = two_disks(tmp_path, "by-topic-id")
    with opened(*paths) as store:
        fill_store(store, *TOPICS)
        where = {each.path for each in store.replicas()}
        planned = move_namespace(store, "org", "com:shop")
        assert {step.split(" ")[0] for _, step in planned.lines()} == {"rewrite", "rename"}
        assert {each.path for each in store.replicas()} == where
        assert list_namespaces(store) == ["com", "com:shop", "com:shop:apache"]
        with pytest.raises(InvalidNamespaceError, match="there is no namespace org"):
            move_namespace(store, "org", "net")
    assert offsets(paths)["com:shop:apache:views-1"] == 41
    with opened(*paths) as store:
        assert {each.partition.topic for each in store.replicas()} == {
            *("orders", "com:shop:clicks", "com:shop:apache:views")
        }


def test_settings_that_were_given_for_it_go_along(paths: list[Path]) -> None:
    settings = Settings({"": {DELETE_DELAY: 1}, "org:": {STALE_DELAY: 2}, "org:apache:views": {STALE_DELAY: 3}})
    with opened(*paths, settings=settings) as store:
        move_namespace(store, "org", "com:shop")
        assert store.settings.of("com:shop:clicks", STALE_DELAY) == 2
        assert store.settings.of("com:shop:apache:views", STALE_DELAY) == 3
        assert store.settings.of("org:clicks", STALE_DELAY) == store.settings.of("orders", STALE_DELAY)
        assert store.settings.of("com:shop:clicks", DELETE_DELAY) == 1


def test_old_offsets_of_the_new_names_are_not_taken_for_their_own(paths: list[Path]) -> None:
    old = {("net:clicks", 0): 999, ("net:apache:views", 7): 1, ("net:other", 0): 5}
    write_offsets(paths[0], {**read_offsets(paths[0]), **old})
    with opened(*paths) as store:
        move_namespace(store, "org", "net")
    assert read_offsets(paths[0]) == {
        ("orders", 0): 40,
        ("net:clicks", 0): 40,
        ("net:apache:views", 0): 40,
        ("net:other", 0): 5,
    }


def test_planning_changes_nothing_and_shows_every_step(paths: list[Path]) -> None:
    with opened(*paths) as store:
        before = look(paths)
        planned = plan_move_namespace(store, "org:apache", "com:shop")
        assert look(paths) == before
        assert [step for path, step in planned.lines() if path == str(paths[0])] == [
            "make the tier com",
            "make the tier com/shop",
            "rename org/apache/views-0 to com/shop/views-0",
            "rewrite com/shop/views-0/partition.metadata",
            "rename the checkpoint entries of org:apache:views to com:shop:views",
            "remove the tier org/apache",
        ]
        carry_out(store, planned)
        assert list_namespaces(store, "com") == ["com:shop"]


@pytest.mark.parametrize(
    ("namespace", "target", "error", "text"),
    [
        ("org", "org", InvalidNamespaceError, "has that name already"),
        ("org", "org:apache", InvalidNamespaceError, "org:apache lies inside org"),
        ("org", "org:new:one", InvalidNamespaceError, "org:new:one lies inside org"),
        ("org:apache", "org", InvalidNamespaceError, "org:apache lies inside org"),
        ("", "net", InvalidNamespaceError, "neither deleted nor moved"),
        ("org", "", InvalidNamespaceError, "neither deleted nor moved"),
        ("nowhere", "net", InvalidNamespaceError, "there is no namespace nowhere"),
        ("net", "org", NameTakenError, "below it: org:apache, org:empty; topics in it: org:apache:views, org:clicks"),
        ("net", "org:apache", NameTakenError, "topics in it: org:apache:views; nothing is ever merged"),
        ("net", "a_b", InvalidNameError, "is no namespace"),
        ("a_b", "net", InvalidNameError, "is no namespace"),
        ("org", "orders-0", NameTakenError, "a replica's directory"),
        ("org", ":".join(["x" * 249] * 16), InvalidNameError, "the most"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_happens(
    paths: list[Path], namespace: str, target: str, error: type[Exception], text: str
) -> None:
    before = look(paths)
    with opened(*paths) as store, pytest.raises(error, match=text):
        move_namespace(store, namespace, target)
    assert look(paths) == before


def stranger(store: LogStore, paths: list[Path]) -> None:
    (paths[1] / "org" / "apache" / "stranger").mkdir()


def on_its_way(store: LogStore, paths: list[Path]) -> None:
    (paths[1] / f"views-0.{'0' * 32}-future").mkdir()


def in_the_way(store: LogStore, paths: list[Path]) -> None:
    (paths[1] / "com").mkdir()


def offline(store: LogStore, paths: list[Path]) -> None:
    store.log_dirs[1].go_offline("its disk is broken")


@pytest.mark.parametrize(
    ("obstacle", "error", "text"),
    [
        (stranger, ChangeRefusedError, "org/apache/stranger"),
        (on_its_way, ChangeRefusedError, "let that move between disks end first"),
        (in_the_way, NameTakenError, "something else"),
        (offline, OfflineLogDirError, "moving namespace org needs every log dir"),
    ],
)
def test_what_stands_in_the_way_on_one_disk_keeps_all_as_it_is(paths: list[Path], obstacle, error, text) -> None:
    with opened(*paths) as store:
        obstacle(store, paths)
        before = look(paths)
        with pytest.raises(error, match=text):
            move_namespace(store, "org", "com:shop")
        assert look(paths) == before


def test_a_disk_that_never_had_it_gets_the_new_name(paths: list[Path]) -> None:
    with opened(*paths) as store:
        (paths[1] / "net" / ".logstore_tier").unlink()
        (paths[1] / "net").rmdir()
        move_namespace(store, "net", "com")
    assert [(path / "com" / ".logstore_tier").is_file() for path in paths] == [True, True]


def test_a_real_brokers_log_dir_is_refused(new_log_dir, tmp_path: Path) -> None:
    real = new_log_dir(tmp_path / "real").identity()
    real.replica("orders-0")
    before = look([real.path])
    with opened(real.path) as store, pytest.raises(LogStoreError, match="a real broker's log dir"):
        move_namespace(store, "org", "net")
    assert look([real.path]) == before


def test_it_does_not_get_the_name_of_a_partitions_directory(paths: list[Path]) -> None:  # KIP37-2
    with opened(*paths) as store, pytest.raises(NamespaceClashError, match="partition 1 of topic orders and namespace"):
        plan_move_namespace(store, "org", "orders-1")
