"""What is looked at of each configured path; nothing that lies there stops the look."""

from __future__ import annotations

import os
from pathlib import Path

from layout.log_dir_set import FailedLogDir
from layout.meta_properties import MetaProperties
from reconciler.preflight import SeenBroker, is_anything_there, look_at_broker
from tests.reconciler.preflight.disks import HEX, METADATA_LOG, identity, kraft_log_dir, log_dir


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
    told = [(each.is_there, each.obstacle is None, each.failed) for each in look_at_broker(paths).log_dirs]
    assert told == [
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
