"""The contents of each configured path, whatever is there, and what the metadata say about each directory.

The metadata are asked by topic ID, as a broker does, and by name.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from layout.ids import TopicId
from layout.log_dir_set import FailedLogDir
from layout.meta_properties import MetaProperties
from reconciler.desired import Completeness, DesiredState
from reconciler.preflight import SeenBroker, is_anything_there, look_at_broker
from reconciler.preflight.evidence import UNKNOWN_WANT, BrokerWants, find_wants
from tests.reconciler.preflight.disks import (
    HEX,
    METADATA_LOG,
    ORDERS,
    OTHER,
    directory_id,
    identity,
    kraft_log_dir,
    log_dir,
    wanted,
)


def test_each_path_is_seen_in_the_order_given_with_what_lies_there(tmp_path: Path) -> None:
    first = kraft_log_dir(tmp_path / "1", ["orders-0"])
    second = log_dir(tmp_path / "2", [f"orders-1.{HEX}-delete"], identity(number=2))
    seen = look_at_broker([str(second), str(first)])
    assert [each.path for each in seen.log_dirs] == [str(second), str(first)]
    assert [[each.name for each in log_dir.directories] for log_dir in seen.log_dirs] == [
        [f"orders-1.{HEX}-delete"],
        [METADATA_LOG, "orders-0"],
    ]
    assert seen.metadata_log_dir == str(second)
    assert all(each.is_loaded and each.stopped_cleanly for each in seen.log_dirs)


def test_what_a_broker_makes_of_meta_properties_is_kept_apart(tmp_path: Path) -> None:
    for name, text in (("empty", b""), ("broken", b"version=9"), ("ours", b"version=0\nlogstore.scheme=unheard-of")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "meta.properties").write_bytes(text)
    (tmp_path / "none").mkdir()
    found = {
        Path(each.path).name: each.identity
        for each in look_at_broker([str(tmp_path / name) for name in ("empty", "broken", "ours", "none")]).log_dirs
    }
    # FACTS §2.2: a missing version means 0, which requires nothing; a broker does not know logstore.scheme.
    assert found["empty"] == MetaProperties(0)
    assert isinstance(found["broken"], FailedLogDir)
    assert isinstance(found["ours"], MetaProperties)
    assert found["none"] is None


def test_paths_that_are_no_directories_have_an_obstacle_and_absent_ones_have_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "dangling").symlink_to("nowhere")
    paths = [str(tmp_path / name) for name in ("file", "dangling", "absent")] + ["/\0", str(tmp_path / "file" / "x")]
    # 10.3 row 39: a path of NUL takes the log dir offline.
    found = [(each.is_there, each.obstacle is None, each.failed) for each in look_at_broker(paths).log_dirs]
    assert found == [
        (True, False, True),
        (True, False, True),
        (False, True, False),
        (True, False, True),
        (True, False, True),
    ]


def test_two_paths_to_one_place_count_as_one_place(tmp_path: Path) -> None:
    log_dir(tmp_path / "1", ["orders-0"])
    (tmp_path / "2").symlink_to("1")
    seen = look_at_broker([str(tmp_path / "1"), str(tmp_path / "2"), str(tmp_path / "1") + "/"])
    assert (len(seen.log_dirs), len(seen.distinct), len(seen.loaded)) == (3, 1, 1)
    assert sum(row["kind"] == "live" for row in seen.rows()) == 1


def test_a_metadata_log_dir_apart_from_log_dirs_is_seen_and_not_loaded(tmp_path: Path) -> None:
    data, metadata = log_dir(tmp_path / "data"), kraft_log_dir(tmp_path / "metadata")
    seen = look_at_broker([str(data)], str(metadata))
    assert [each.for_replicas for each in seen.log_dirs] == [True, False]
    assert (seen.metadata_log_dir, [each.path for each in seen.loaded]) == (str(metadata), [str(data)])
    assert len(look_at_broker([str(data), str(metadata)], str(metadata)).log_dirs) == 2


def test_names_that_are_not_utf8_are_seen(tmp_path: Path) -> None:
    kraft_log_dir(tmp_path / "1")
    os.mkdir(os.fsencode(str(tmp_path / "1")) + b"/caf\xe9-0")
    (only,) = look_at_broker([str(tmp_path / "1")]).log_dirs
    assert "caf\\xe9-0" in [each.shown for each in only.directories]
    assert "caf\\xe9-0" in [row["name"] for row in only.rows]


def test_nothing_is_there_when_no_path_exists(tmp_path: Path) -> None:
    assert not is_anything_there([str(tmp_path / "a"), str(tmp_path / "b")])
    assert is_anything_there([str(tmp_path / "a"), str(tmp_path)])


def test_no_log_dirs_make_no_metadata_log_dir() -> None:
    assert SeenBroker.of([]).metadata_log_dir is None


def asked(path: Path, states: dict[str, DesiredState]) -> BrokerWants:
    return find_wants(states, list(look_at_broker([str(path)]).rows()), 0)


@pytest.mark.parametrize(
    ("on_disk", "states", "by_name", "by_topic_id", "stale"),
    [
        (ORDERS, wanted(0), True, True, False),
        (OTHER, wanted(0), True, False, True),
        (None, wanted(0), True, False, False),
        (ORDERS, wanted(1), False, False, False),
        (ORDERS, wanted(0, nodes=(2, 3)), False, False, False),
        # FACTS §6.3: the name is not compared.
        (ORDERS, wanted(0, topic="payments"), False, True, False),
    ],
)
def test_a_replica_is_wanted_by_topic_id_or_by_name(
    tmp_path: Path,
    on_disk: TopicId | None,
    states: dict[str, DesiredState],
    by_name: bool,
    by_topic_id: bool,
    stale: bool,
) -> None:
    path = log_dir(tmp_path / "1", {"orders-0": on_disk})
    want = asked(path, states).about(str(path), "orders-0")
    assert (want.by_name, want.by_topic_id, want.is_stale) == (by_name, by_topic_id, stale)
    assert (want.is_judged, want.is_unwanted) == (True, not by_topic_id)


def test_future_and_delete_dirs_are_asked_about_by_topic_id(tmp_path: Path) -> None:
    path = log_dir(tmp_path / "1", [f"orders-0.{HEX}-future", f"orders-0.{HEX}-delete", f"orders-1.{HEX}-stray"])
    wants = asked(path, wanted(0))
    found = {
        name: wants.about(str(path), f"orders-{name}").by_topic_id for name in (f"0.{HEX}-future", f"0.{HEX}-delete")
    }
    assert all(found.values())
    assert wants.about(str(path), f"orders-1.{HEX}-stray").is_unwanted


def test_what_incomplete_metadata_do_not_mention_is_not_unwanted(tmp_path: Path) -> None:
    path = log_dir(tmp_path / "1", ["orders-7"])
    want = asked(path, wanted(0, completeness=Completeness.INCREMENTAL)).about(str(path), "orders-7")
    assert (want.is_judged, want.by_topic_id, want.is_unwanted) == (True, False, False)


def test_the_log_dir_that_the_controller_assigned_is_known(tmp_path: Path) -> None:
    path = log_dir(tmp_path / "1", ["orders-0"])
    for number, here in ((1, True), (2, False)):
        states = wanted(0, directories=(str(directory_id(number)), None))
        assert asked(path, states).about(str(path), "orders-0").assigned_here is here


def test_a_wanted_replica_on_no_log_dir_is_reported(tmp_path: Path) -> None:
    path = log_dir(tmp_path / "1", ["orders-0"])
    (nowhere,) = asked(path, wanted(0, 1)).nowhere
    assert nowhere.wanted is not None and nowhere.wanted["partition"] == 1


def test_only_a_replica_in_sync_alone_is_the_only_one(tmp_path: Path) -> None:
    path = log_dir(tmp_path / "1", ["orders-0"])
    for isr, only in (((1,), True), ((1, 2), False), ((2,), False)):
        assert asked(path, wanted(0, isr=isr)).about(str(path), "orders-0").only_in_sync is only


def test_without_metadata_nothing_is_known(tmp_path: Path) -> None:
    path = log_dir(tmp_path / "1", ["orders-0"])
    assert asked(path, {}).about(str(path), "orders-0") is UNKNOWN_WANT
    assert not UNKNOWN_WANT.is_unwanted
