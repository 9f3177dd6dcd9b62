"""The sample fleet: it is what its truth says, and an audit finds that truth and nothing else."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from layout import checkpoint, meta_properties, partition_metadata
from layout.directory_name import DirectoryKind, parse
from logstore.scan import scan_all
from reconciler.audit import embedded
from reconciler.sources.kraft import source as kraft
from reconciler.verdicts import Verdict
from tools.fleet.sample_check import differences
from tools.fleet.sample_fleet import Truth, build, load_truth

NOW_MS = 1_795_000_000_000


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample") / "fleet"
    build(str(folder), now_ms=NOW_MS)
    return folder


@pytest.fixture(scope="module")
def truth(fleet: Path) -> Truth:
    return load_truth(str(fleet))


def digest(folder: Path) -> str:
    """Over every path below the folder, with the length, and the bytes where they are not a preallocated index."""
    whole = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        whole.update(str(path.relative_to(folder)).encode())
        if path.is_file():
            size = path.stat().st_size
            whole.update(str(size).encode())
            whole.update(path.read_bytes() if size < 1 << 20 else b"")
    return whole.hexdigest()


def test_twelve_brokers_have_two_log_dirs_each_and_some_400_replicas(fleet: Path, truth: Truth) -> None:
    assert len(truth.log_dirs) == 24
    assert all((fleet / path).is_dir() for path in truth.log_dirs)
    desired = kraft.load(str(fleet / truth.metadata))
    assert 380 <= desired.replicas.num_rows <= 420
    assert desired.topics.num_rows == 15
    assert desired.brokers.num_rows == 12
    assert desired.identity.cluster_id == truth.cluster_id


def test_every_verdict_is_planted(truth: Truth) -> None:
    assert set(truth.by_verdict) | {"OK"} == {verdict.value for verdict in Verdict}


def test_the_truth_comes_back_as_it_was_written(fleet: Path, truth: Truth, tmp_path: Path) -> None:
    assert build(str(tmp_path / "again"), now_ms=NOW_MS) == truth


def test_the_same_seed_and_time_give_the_same_bytes_and_another_seed_gives_others(fleet: Path, tmp_path: Path) -> None:
    build(str(tmp_path / "same"), now_ms=NOW_MS)
    build(str(tmp_path / "other"), now_ms=NOW_MS, seed=7)
    assert digest(tmp_path / "same") == digest(fleet)
    assert digest(tmp_path / "other") != digest(fleet)


def test_what_is_planted_on_a_disk_lies_there_and_what_is_missing_does_not(fleet: Path, truth: Truth) -> None:
    for planted in truth.findings:
        on_broker = [
            fleet / path / planted.name for path in truth.log_dirs if path.startswith(f"broker-{planted.broker:02d}/")
        ]
        if planted.verdict == Verdict.CHECKPOINT_ENTRY or not planted.log_dir:
            assert not any(path.exists() for path in on_broker), planted
        else:
            assert (fleet / planted.log_dir / planted.name).exists(), planted


def test_the_names_in_the_log_dirs_say_what_the_verdicts_say(truth: Truth) -> None:
    kinds = {
        Verdict.MARKED_DELETE: DirectoryKind.DELETE,
        Verdict.STRAY: DirectoryKind.STRAY,
        Verdict.FUTURE: DirectoryKind.FUTURE,
        Verdict.FUTURE_ABANDONED: DirectoryKind.FUTURE,
        Verdict.STALE_ID: DirectoryKind.LIVE,
        Verdict.DUPLICATE: DirectoryKind.LIVE,
    }
    for planted in truth.findings:
        if Verdict(planted.verdict) in kinds:
            assert parse(planted.name).kind is kinds[Verdict(planted.verdict)]


def test_a_stray_of_the_long_topic_has_a_name_cut_to_255(truth: Truth) -> None:
    assert 255 in {len(planted.name) for planted in truth.findings if planted.verdict == Verdict.STRAY}


def test_the_recreated_topic_has_another_id_on_broker_7_than_in_the_metadata(fleet: Path, truth: Truth) -> None:
    topics = kraft.load(str(fleet / truth.metadata)).topics.to_pylist()
    now = {row["topic"]: row["topic_id"] for row in topics}
    assert "legacy-exports" not in now
    stale = [planted for planted in truth.findings if planted.verdict == Verdict.STALE_ID]
    assert stale
    for planted in stale:
        assert planted.broker == 7
        file = fleet / planted.log_dir / planted.name / partition_metadata.FILE_NAME
        assert str(partition_metadata.parse(file.read_bytes()).topic_id) != now["clicks"]


def test_every_identity_and_checkpoint_reads_and_the_unmounted_disk_is_empty(fleet: Path, truth: Truth) -> None:
    unmounted = [p.log_dir for p in truth.findings if p.verdict == Verdict.ABSENT and p.name == "."]
    assert [list((fleet / path).iterdir()) for path in unmounted] == [[]]
    for path in set(truth.log_dirs) - set(unmounted):
        identity = meta_properties.parse((fleet / path / meta_properties.FILE_NAME).read_bytes())
        assert identity.node_id == int(path[len("broker-") :][:2])
        for name in checkpoint.OFFSET_CHECKPOINTS:
            checkpoint.parse_offsets((fleet / path / name).read_bytes(), name)


def test_an_audit_finds_what_was_planted_and_nothing_else(fleet: Path, truth: Truth, tmp_path: Path) -> None:
    rows = [seen.rows for seen in scan_all([str(fleet / path) for path in truth.log_dirs])]
    result = embedded.audit(rows, [], [kraft.load(str(fleet / truth.metadata))], str(tmp_path), now_ms=NOW_MS)
    findings = pq.read_table(result.findings_path).to_pylist()
    assert differences(truth, str(fleet), findings, [(entry.kind, entry.subject) for entry in result.fleet]) == []
    assert result.totals["OK"] == truth.ok
    assert not result.doubts


def test_what_differs_from_the_truth_is_named(fleet: Path, truth: Truth) -> None:
    nothing_found = differences(truth, str(fleet), [], [])
    assert len(nothing_found) == len(truth.findings) + len(truth.fleet)
    assert "planted and not found: FOREIGN broker-02/disk-2 lost+found" in nothing_found
    row = {"verdict": "STRAY", "log_dir": None, "kind": None, "topic": "t", "partition": 1, "name": None, "broker": 4}
    assert "found and not planted: STRAY broker 4 t-1" in differences(truth, str(fleet), [row], [])


def test_a_folder_that_holds_something_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    with pytest.raises(FileExistsError, match="not empty"):
        build(str(tmp_path), now_ms=NOW_MS)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
