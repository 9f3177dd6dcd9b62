"""Rules about partition dirs, by release and mode: FACTS §1.3, §1.6-1.8, §2.1, §4.2, §6, and 10.3 rows 43-67."""

from __future__ import annotations

from pathlib import Path

import pytest

from layout import partition_metadata
from layout.ids import TopicId
from reconciler.desired import Completeness, DesiredBuilder, DesiredState, MetadataIdentity
from reconciler.preflight import StartEffect
from tests.reconciler.preflight.disks import (
    CLUSTER,
    HEX,
    ORDERS,
    OTHER,
    ask,
    directory_id,
    effects,
    identity,
    kraft_log_dir,
    log_dir,
    of_rule,
    replica,
    wanted,
)
from tests.reconciler.preflight.scenarios import future, second_log_dir, zookeeper

STOPS, OFFLINE, STRAY, GONE, NOTE = (
    StartEffect.STARTUP_ABORTS,
    StartEffect.LOG_DIR_OFFLINE,
    StartEffect.RENAMED_TO_STRAY,
    StartEffect.DELETED,
    StartEffect.NOTE,
)


def with_directory(path: Path, name: str) -> Path:
    kraft_log_dir(path)
    (path / name).mkdir()
    return path


@pytest.mark.parametrize("name", ["lost+found", "deleting", ".deleting", "data", "foo-1a", "foo-0-delete", "snapshot"])
def test_one_foreign_directory_stops_every_broker(tmp_path: Path, name: str) -> None:
    # FACTS §1.3, §1.6; USERS pain 9
    answer = ask(with_directory(tmp_path / "1", name))
    ((rule, effect),) = effects(answer)
    assert (rule, effect) == ("staging_inside" if name == "deleting" else "foreign_name", STOPS)
    assert answer.findings[0].place.name == name


def test_the_index_cache_of_tiered_storage_stops_a_broker_before_3_5(tmp_path: Path) -> None:
    # FACTS §1.6; 10.3 row 43
    path = with_directory(tmp_path / "1", "remote-log-index-cache")
    assert effects(ask(path, "3.4")) == [("unknown_to_release", STOPS)]
    assert effects(ask(path, "3.5"), notes=True) == []


def test_a_stray_stops_a_broker_before_3_6_1_and_is_a_note_since(tmp_path: Path) -> None:
    # FACTS §1.3: a downgrade hazard
    path = kraft_log_dir(tmp_path / "1", [f"orders-0.{HEX}-stray"])
    assert effects(ask(path, "3.6.0")) == [("unknown_to_release", STOPS)]
    assert effects(ask(path, "3.6.1"), notes=True) == [("stray", NOTE)]


def test_a_delete_dir_goes_and_the_metadata_may_still_want_it(tmp_path: Path) -> None:
    # FACTS §1.8
    path = kraft_log_dir(tmp_path / "1", [f"orders-0.{HEX}-delete"])
    assert effects(ask(path)) == [("marked_delete", GONE)]
    (found,) = of_rule(ask(path, states=wanted(0, isr=[1])), "marked_delete")
    assert found.only_in_sync and "the metadata want it here" in found.problem


@pytest.mark.parametrize(
    ("data", "release", "effect"),
    [
        # FACTS §2.1, line by line
        (b"", "3.9", STOPS),
        (b"version: 0\n", "3.9", STOPS),
        (b"version: 0\ntopic_id: short", "3.9", STOPS),
        (b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", "3.9", OFFLINE),
        (b"version: -1\ntopic_id: AAECAwQFBgcICQoLDA0ODw", "3.9", OFFLINE),
        (b"version:0\ntopic_id: AAECAwQFBgcICQoLDA0ODw", "3.9", OFFLINE),
        (b"\xff\xfe", "3.9", OFFLINE),
        (b"version: 1\ntopic_id: AAECAwQFBgcICQoLDA0ODw", "3.6.2", OFFLINE),
        (b"version: 1\ntopic_id: AAECAwQFBgcICQoLDA0ODw", "3.7.1", None),
        # The proposal's forms, which are ours alone: JSON, and key/value in an order that a broker does not take.
        (partition_metadata.encode_json(ORDERS, "orders", 0), "3.9", OFFLINE),
        (b"name: orders\npartition: 0\nid: AAECAwQFBgcICQoLDA0ODw\nschema_version: 0", "3.9", OFFLINE),
        (b"schema_version: 0\nid: AAECAwQFBgcICQoLDA0ODw\nname: orders\npartition: 0", "3.9", None),
    ],
)
def test_damage_of_partition_metadata_is_as_grave_as_its_kind(
    tmp_path: Path, data: bytes, release: str, effect: StartEffect | None
) -> None:
    first = kraft_log_dir(tmp_path / "1")
    second = log_dir(tmp_path / "2", ["orders-0"], identity(number=2))
    (second / "orders-0" / "partition.metadata").write_bytes(data)
    expected = [] if effect is None else [("partition_metadata", effect)]
    assert effects(ask([first, second], release)) == expected


@pytest.mark.parametrize(
    ("release", "found"),
    [
        # FACTS §6.1: USERS F4
        *(("4.0", [("no_topic_id", STRAY)]), ("3.7.1", [("no_topic_id", STRAY)]), ("3.7", [("no_topic_id", STOPS)])),
        *(("3.6.2", [("stray_search_fails", NOTE)]), ("3.0", [("stray_search_fails", NOTE)]), ("2.8", [])),
    ],
)
def test_a_replica_without_partition_metadata_in_kraft(
    tmp_path: Path, release: str, found: list[tuple[str, StartEffect]]
) -> None:
    # 10.3 row 63
    path = kraft_log_dir(tmp_path / "1", {"orders-0": None, f"orders-1.{HEX}-future": ORDERS})
    assert [each for each in effects(ask(path, release), notes=True) if each[0] != "future"] == found


def test_a_replica_without_partition_metadata_is_nothing_to_zookeeper(tmp_path: Path) -> None:
    path = log_dir(tmp_path / "1", {"orders-0": None}, identity(0))
    assert effects(ask(path, mode="zookeeper"), notes=True) == []


def test_the_only_replica_in_sync_is_reported_when_it_would_become_a_stray(tmp_path: Path) -> None:
    # FACTS §6.5 (iii): data loss when the replication factor is 1
    path = kraft_log_dir(tmp_path / "1", {"orders-0": None})
    (found,) = ask(path, states=wanted(0, isr=[1], nodes=[1])).findings
    assert (found.rule, found.effect, found.only_in_sync) == ("no_topic_id", STRAY, True)
    assert "only in-sync replica" in found.problem
    (other,) = ask(path, states=wanted(0)).findings
    assert not other.only_in_sync


@pytest.mark.parametrize(
    ("release", "mode", "effect"),
    [
        # FACTS §6.1
        *(("3.0", "kraft", GONE), ("3.6.2", "kraft", GONE), ("3.7", "kraft", STRAY), ("4.0", "kraft", STRAY)),
        *(("3.6.0", "migration", NOTE), ("3.6.1", "migration", STRAY), ("3.9", "migration", STRAY)),
        ("3.9", "zookeeper", NOTE),
    ],
)
@pytest.mark.parametrize("nodes", [(2, 3), None])
def test_an_unwanted_replica_is_renamed_deleted_or_left(
    tmp_path: Path, release: str, mode: str, effect: StartEffect, nodes: tuple[int, ...] | None
) -> None:
    path = kraft_log_dir(tmp_path / "1", ["orders-0"])
    if mode == "zookeeper":
        (path / "meta.properties").write_bytes(b"version=0\nbroker.id=1\ncluster.id=" + CLUSTER.encode())
    states = wanted(5, nodes=(2, 3)) if nodes is None else wanted(0, nodes=nodes)
    (found,) = of_rule(ask(path, release, mode, states), "unwanted")
    assert (found.effect, found.replicas, found.place.topic_id) == (effect, 1, str(ORDERS))


def image(**partitions: tuple[int, ...]) -> dict[str, DesiredState]:
    """Upstream's images: ``foo0=(0, 1, 2)``; the topics' IDs are fixed."""
    builder = DesiredBuilder()
    builder.topic("unrelated", str(TopicId(bytes([8] * 16))))
    for name, nodes in partitions.items():
        builder.partition(name[:-1], IDS[name[:-1]], int(name[-1]), nodes, isr=nodes, leader=nodes[0])
    return {CLUSTER: builder.build(MetadataIdentity("kraft", "a test", CLUSTER))}


IDS = {"foo": "Sl08ZXU2QW6uF5hIoSzc8w", "bar": "69O438ZkTSeqqclTtZO2KA", "quux": "YS9owjv5TG2OlsvBM0Qw6g"}
FIVE = ["foo-0", "foo-1", "bar-0", "bar-1", "quux-0"]


@pytest.mark.parametrize(
    ("states", "on_disk", "strays"),
    [
        # 10.3 rows 60-62, for broker 1 instead of 0
        (image(), FIVE, ["bar-0", "bar-1", "foo-0", "foo-1", "quux-0"]),
        (
            image(foo0=(1, 0, 2), bar0=(1, 0, 2), bar1=(1, 0, 2)),
            FIVE,
            ["foo-1", "quux-0"],
        ),
        (image(foo0=(0, 1, 2), bar0=(0, 2, 3), bar1=(2, 3, 1)), ["foo-0", "bar-0", "bar-1"], ["bar-0"]),
    ],
)
def test_upstreams_cases_of_strays_in_kraft(
    tmp_path: Path, states: dict[str, DesiredState], on_disk: list[str], strays: list[str]
) -> None:
    replicas = {name: TopicId.parse(IDS[name.rpartition("-")[0]]) for name in on_disk}
    path = kraft_log_dir(tmp_path / "1", replicas)
    assert [each.place.name for each in of_rule(ask(path, states=states), "unwanted")] == strays


def test_the_name_of_a_topic_counts_in_a_migration_and_not_in_kraft(tmp_path: Path) -> None:
    # FACTS §6.2, §6.3: orders' data lies under the ID of payments.
    path = kraft_log_dir(tmp_path / "1", ["orders-0"])
    states = wanted(0, topic="payments")
    assert not of_rule(ask(path, states=states), "unwanted")
    assert of_rule(ask(path, "3.9", "migration", states), "unwanted")[0].effect is STRAY


def test_3_6_1_tells_strays_in_a_migration_by_name_alone(tmp_path: Path) -> None:
    # FACTS §6.1
    path = kraft_log_dir(tmp_path / "1", {"orders-0": OTHER})
    assert effects(ask(path, "3.6.1", "migration", wanted(0))) == [("inconsistent_topic_id", StartEffect.NOT_SERVED)]
    assert effects(ask(path, "3.6.2", "migration", wanted(0))) == [("unwanted", STRAY)]


def test_a_replica_without_id_spares_the_strays_of_3_6_and_of_a_migration(tmp_path: Path) -> None:
    # FACTS §6.1, §6.2: the search, or the whole FULL request, fails.
    path = kraft_log_dir(tmp_path / "1", {"orders-0": None, "orders-9": ORDERS})
    assert effects(ask(path, "3.5", states=wanted(0))) == []
    assert effects(ask(path, "3.9", "migration", wanted(0))) == [("full_request_fails", StartEffect.NOT_SERVED)]
    assert effects(ask(path, "3.9", states=wanted(0))) == [("no_topic_id", STRAY), ("unwanted", STRAY)]


def test_a_re_created_topic_is_refused_in_zookeeper_mode_and_made_stray_in_kraft(tmp_path: Path) -> None:
    # FACTS §4.2 b; 10.1 row 15
    path = kraft_log_dir(tmp_path / "1", {"orders-0": OTHER})
    (found,) = ask(path, states=wanted(0)).findings
    assert (found.rule, found.effect) == ("unwanted", STRAY) and "re-created" in found.problem
    (path / "meta.properties").write_bytes(b"version=0\nbroker.id=1\ncluster.id=" + CLUSTER.encode())
    (found,) = of_rule(ask(path, "3.9", "zookeeper", wanted(0)), "inconsistent_topic_id")
    assert "103" in found.problem and str(ORDERS) in found.problem
    assert "in sync" not in found.problem


def test_before_3_0_a_re_created_topic_is_refused_only_where_the_broker_is_to_lead(tmp_path: Path) -> None:
    # FACTS §4.2 b
    path = kraft_log_dir(tmp_path / "1", {"orders-0": OTHER})
    (path / "meta.properties").write_bytes(b"version=0\nbroker.id=1\ncluster.id=" + CLUSTER.encode())
    for release, joins, effect in (("2.8", True, StartEffect.OLD_RECORDS), ("3.0", False, StartEffect.NOT_SERVED)):
        (found,) = of_rule(ask(path, release, "zookeeper", wanted(0)), "inconsistent_topic_id")
        assert ("counts as in sync" in found.problem, "103" in found.problem) == (joins, True)
        assert found.effect is effect


@pytest.mark.parametrize(
    "names", [("orders-0", "orders-0"), (f"orders-0.{HEX}-future", f"orders-0.{HEX[::-1]}-future")]
)
def test_two_current_or_two_future_replicas_stop_a_broker(tmp_path: Path, names: tuple[str, str]) -> None:
    # FACTS §1.7
    first = kraft_log_dir(tmp_path / "1", [names[0]])
    second = log_dir(tmp_path / "2", [names[1]], identity(number=2))
    answer = ask([first, second])
    assert effects(answer) == [("duplicate", STOPS)] * 2
    assert str(second) in answer.findings[0].problem


def test_leading_zeros_make_a_duplicate_in_one_log_dir(tmp_path: Path) -> None:
    # FACTS §1.7
    path = kraft_log_dir(tmp_path / "1", ["orders-0", "orders-00", "orders-+0", "orders-1"])
    assert [each.place.name for each in of_rule(ask(path), "duplicate")] == ["orders-+0", "orders-0", "orders-00"]


def test_a_current_and_a_future_replica_and_any_stray_are_no_duplicates(tmp_path: Path) -> None:
    # FACTS §1.7
    names = ["orders-0", f"orders-0.{HEX}-future", f"orders-0.{HEX}-stray", f"orders-0.{HEX[::-1]}-stray"]
    assert not of_rule(ask(kraft_log_dir(tmp_path / "1", names)), "duplicate")


def test_a_copy_that_is_made_stray_first_is_no_duplicate_since_3_7_1(tmp_path: Path) -> None:
    # FACTS §1.6: the test for strays comes before the table of current replicas.
    first = kraft_log_dir(tmp_path / "1", {"orders-0": ORDERS})
    second = log_dir(tmp_path / "2", {"orders-0": OTHER}, identity(number=2))
    assert effects(ask([first, second], "3.7.1", states=wanted(0))) == [("unwanted", STRAY)]
    assert ("duplicate", STOPS) in effects(ask([first, second], "3.7", states=wanted(0)))
    unknown = of_rule(ask([first, second], "3.9"), "duplicate")
    assert len(unknown) == 2 and "metadata" in unknown[0].problem


@pytest.mark.parametrize(
    ("beside", "release", "effect"),
    [
        # FACTS §6.3, §6.5 (KAFKA-16082)
        *((True, "3.9", StartEffect.REPLACED), (False, "3.9", NOTE), (True, "3.7", OFFLINE), (False, "3.7", NOTE)),
    ],
)
def test_a_future_replica_where_the_controller_wants_it_is_promoted(
    tmp_path: Path, beside: bool, release: str, effect: StartEffect
) -> None:
    (found,) = of_rule(future(tmp_path, beside, release), "future_promoted")
    assert found.effect is effect


def test_a_future_replica_elsewhere_or_before_3_7_is_moved_on_by_the_broker_itself(tmp_path: Path) -> None:
    assert effects(future(tmp_path / "a", True, "3.6.2"), notes=True) == [("future", StartEffect.REPLACED)]
    path = kraft_log_dir(tmp_path / "b", ["orders-0", f"orders-0.{HEX}-future"])
    states = wanted(0, directories=(str(directory_id(7)), None))
    answer = ask(path, states=states)
    assert effects(answer, notes=True) == [("future", StartEffect.REPLACED)]
    assert f"{path}/orders-0 is deleted" in of_rule(answer, "future")[0].problem


@pytest.mark.parametrize(("isr", "effect"), [([1, 2], NOTE), ([1], StartEffect.DELETED), ([], StartEffect.UNKNOWN)])
def test_a_future_replica_without_its_original_is_cut_back_to_what_is_made_anew(
    tmp_path: Path, isr: list[int], effect: StartEffect
) -> None:
    # Seen on 2.8.2, 3.9.2 and 4.3.1: the move goes on from the replica that the broker makes, also on another disk.
    path = zookeeper(tmp_path / "a", f"orders-0.{HEX}-future")
    (found,) = of_rule(ask(path, "2.8", "zookeeper", wanted(0, isr=isr)), "future_alone")
    assert (found.effect, found.only_in_sync) == (effect, effect is StartEffect.DELETED)
    assert found.problem.endswith(
        f"; rarely it swaps the two before it wrote the topic ID, and then {path} goes offline"
    )
    (found,) = of_rule(ask(path, "3.9", "zookeeper", wanted(0, isr=isr)), "future_alone")
    assert (found.effect, "rarely" in found.problem) == (effect, False)
    elsewhere = kraft_log_dir(tmp_path / "b", [f"orders-0.{HEX}-future"])
    states = wanted(0, isr=isr, directories=(str(directory_id(2)), None))
    second = second_log_dir(tmp_path / "c")
    (found,) = of_rule(ask([elsewhere, second], "3.9", states=states), "future_alone")
    assert (found.effect, "rarely" in found.problem) == (effect, False)


def test_nothing_is_known_of_a_future_replica_whose_original_may_lie_where_only_this_user_may_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = zookeeper(tmp_path / "1", f"orders-0.{HEX}-future")
    (tmp_path / "2").write_text("no log dir")
    monkeypatch.setattr("reconciler.preflight.evidence.is_closed", lambda path, name: path.endswith("/2"))
    answer = ask([first, tmp_path / "2"], "2.8", "zookeeper", wanted(0, isr=[1]))
    assert not of_rule(answer, "future_alone")
    assert [each.effect for each in of_rule(answer, "missing")] == [StartEffect.UNKNOWN]


def test_a_replica_is_not_missing_where_its_future_one_is_promoted(tmp_path: Path) -> None:
    answer = future(tmp_path / "a", False, "3.9")
    assert effects(answer, notes=True) == [("future_promoted", NOTE)]


def test_a_future_replica_of_an_unwanted_replica_or_of_another_topic_stays(tmp_path: Path) -> None:
    path = zookeeper(tmp_path / "a", f"orders-0.{HEX}-future")
    found = of_rule(ask(path, "3.9", "zookeeper", wanted(0, topic_id=OTHER)), "future")
    assert [each.effect for each in found] == [NOTE]
    names = ["orders-0", f"orders-0.{HEX}-future"]
    path = log_dir(tmp_path / "b", names, identity(0))
    found = of_rule(ask(path, "3.9", "zookeeper", wanted(0, nodes=(2,))), "future")
    assert [each.effect for each in found] == [NOTE]


def test_an_unwanted_future_replica_is_a_stray_too(tmp_path: Path) -> None:
    # FACTS §1.6: test 3 comes before test 4.
    path = kraft_log_dir(tmp_path / "1", [f"orders-7.{HEX}-future"])
    assert effects(ask(path, states=wanted(0, nodes=(2,))), notes=True) == [("unwanted", STRAY)]


def test_what_is_wanted_and_nowhere_is_made_anew(tmp_path: Path) -> None:
    path = kraft_log_dir(tmp_path / "1")
    answer = ask(path, states=wanted(0, 1, 2))
    assert [(each.effect, each.replicas) for each in of_rule(answer, "missing")] == [(NOTE, 3)]
    answer = ask(path, states=wanted(0, 1, isr=[1]))
    assert [(each.effect, each.place.partition) for each in of_rule(answer, "missing")] == [
        (StartEffect.CREATED_EMPTY, 0),
        (StartEffect.CREATED_EMPTY, 1),
    ]
    answer = ask(path, states=wanted(0, 1, isr=[]))
    (unknown,) = of_rule(answer, "missing")
    assert (unknown.effect, unknown.replicas, unknown.only_in_sync) == (StartEffect.UNKNOWN, 2, False)
    assert "whether another one still has the records is not known" in unknown.problem


def test_links_are_not_followed_and_not_judged(tmp_path: Path) -> None:
    elsewhere = replica(tmp_path / "orders-0")
    path = kraft_log_dir(tmp_path / "1")
    (path / "orders-0").symlink_to(elsewhere)
    (path / "current").symlink_to(elsewhere)
    answer = ask(path)
    assert effects(answer) == [("link", StartEffect.UNKNOWN)] * 2
    assert answer.starts and not answer.is_clean


@pytest.mark.parametrize("mode", ["kraft", "migration"])
def test_what_incomplete_metadata_do_not_mention_is_no_stray(tmp_path: Path, mode: str) -> None:
    path = kraft_log_dir(tmp_path / "1", ["orders-5"])
    states = wanted(0, completeness=Completeness.INCREMENTAL)
    assert effects(ask(path, "3.9", mode, states)) == []
