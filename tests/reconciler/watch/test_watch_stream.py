"""The loop of a watch, with real directories and real metadata files."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from layout import partition_metadata
from layout.ids import TopicId
from logstore.watch import Watch, WatchTimes
from reconciler.errors import RefusedError
from reconciler.sources import load
from reconciler.watch import VerdictChange, WatchedMetadata, verdict_changes
from tests.patience import PATIENCE_S
from tools.writers import kraft_writer as kraft

A, B = (TopicId(bytes([number] * 16)) for number in (1, 2))
QUICK = WatchTimes(gather=0.02, check=0.05)


def made(path: Path, cluster: str = "C") -> Path:
    (path / "a-0").mkdir(parents=True)
    (path / "a-0" / "partition.metadata").write_bytes(partition_metadata.encode(A))
    (path / "meta.properties").write_text(f"version=1\ncluster.id={cluster}\nnode.id=1\n")
    return path


def metadata_of(folder: Path, cluster: str = "C", said: list[str] | None = None) -> WatchedMetadata:
    frames = [kraft.topic_record("a", A), kraft.partition_record(A, 0, [1])]
    kraft.write_metadata_dir(folder, snapshot=frames, log=[[kraft.no_op_record()]], cluster_id=cluster, node_id=9)
    return WatchedMetadata([str(folder)], load(str(folder)), (said if said is not None else []).append)


def until(stream: Iterator[list[VerdictChange]], *wanted: tuple[str, str]) -> list[tuple[str, str]]:
    changes: list[tuple[str, str]] = []
    end = time.monotonic() + PATIENCE_S
    while not set(wanted) <= set(changes) and time.monotonic() < end:
        changes += [(change.before, change.after) for change in next(stream)]
    return changes


def test_rows_and_metadata_that_change_are_verdicts_that_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reconciler.watch.metadata.COPY_LAG_S", 0.5)  # its half minute is tried with the metadata alone
    disk, metadata = made(tmp_path / "data"), metadata_of(tmp_path / "controller")
    with Watch([str(disk)], QUICK) as watch:
        stream = verdict_changes(watch, metadata, tick_s=0.05, settle_s=0.1)
        assert next(stream) == []
        (disk / "a-0").rename(disk / "b-0")
        assert until(stream, ("OK", "MISSING"), ("", "RENAMED"))
        log = tmp_path / "controller" / "__cluster_metadata-0" / "00000000000000000002.log"
        with log.open("ab") as file:
            file.write(kraft.log_batch([kraft.remove_topic_record(A), kraft.topic_record("b", B)], 4))
        assert until(stream, ("MISSING", ""), ("RENAMED", "STALE_ID"))
        watch.stop()
        assert not any(stream)


def test_metadata_of_another_cluster_is_refused_at_the_start_and_passed_over_later(tmp_path: Path) -> None:
    said: list[str] = []
    disk, metadata = made(tmp_path / "data"), metadata_of(tmp_path / "controller", said=said)
    stranger = metadata_of(tmp_path / "stranger", "D")
    with Watch([str(disk)], QUICK) as watch:
        with pytest.raises(RefusedError):
            next(verdict_changes(watch, stranger))
        stream = verdict_changes(watch, metadata, tick_s=0.05, settle_s=0.1)
        next(stream)
        (tmp_path / "controller" / "meta.properties").write_text("version=1\ncluster.id=D\nnode.id=9\n")
        end = time.monotonic() + PATIENCE_S
        while not said and time.monotonic() < end:
            assert next(stream) == []
        assert "of cluster D" in said[0]


def test_a_log_dir_that_shows_its_cluster_only_later_is_judged_then(tmp_path: Path) -> None:
    metadata = metadata_of(tmp_path / "controller")
    with Watch([str(tmp_path / "data")], QUICK) as watch:
        stream = verdict_changes(watch, metadata, tick_s=0.05, settle_s=0.1)
        assert [change.after for change in next(stream)] == ["ABSENT"]
        made(tmp_path / "data")
        assert ("ABSENT", "OK") in until(stream, ("ABSENT", "OK"), ("", "OK"))
