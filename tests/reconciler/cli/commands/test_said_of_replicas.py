"""What the commands say of a replica depends on what else is on the broker: each sentence over the real output."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import Result

from layout import meta_properties
from layout.directory_name import delete_name, stray_name
from layout.ids import DirectoryId
from layout.meta_properties import MetaProperties
from reconciler.desired import DesiredBuilder, MetadataIdentity
from reconciler.sources import parquet
from tests.reconciler.cli.commands.test_purge_command import FAR_AWAY_MS, stage_replica
from tests.reconciler.cli.conftest import CLUSTER, ORDERS, Cluster, long_written, make_log_dir

Run = Callable[..., Result]
UNIQUE = "0123456789abcdef0123456789abcdef"


def saved(cluster: Cluster, *in_sync: int, **identity: int) -> str:
    """Metadata of this moment: ``orders`` has two partitions on brokers 1 and 2, in sync where it is said."""
    folder, builder = cluster.folder / "now", DesiredBuilder()
    for partition in range(2):
        builder.partition("orders", str(ORDERS), partition, [1, 2], isr=list(in_sync), leader=in_sync[0])
    folder.mkdir()
    now_ms = time.time_ns() // 1_000_000
    parquet.save_state(
        builder.build(MetadataIdentity("kraft", "x", CLUSTER, timestamp_ms=now_ms, **identity)), str(folder)
    )
    return str(folder)


def words(result: Result) -> str:
    return " ".join(result.stdout.replace("\\\n", " ").split())


@pytest.fixture
def in_use(cluster: Cluster) -> Iterator[str]:
    """The log dir of broker 1, while another process holds its lock."""
    log_dir = cluster.log_dirs[0]
    code = (
        "import sys; from logstore.log_dir import LogDir; held = LogDir.open(sys.argv[1]); print(flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, log_dir], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        yield log_dir
        holder.communicate("\n")


def test_a_replica_of_another_topic_id_is_not_called_the_only_one_in_sync(cluster: Cluster, run: Run) -> None:
    """It should be there, and is not: what lies in its place is of a topic that was deleted."""
    metadata = saved(cluster, 2)
    shown = run("audit", cluster.log_dirs[1], "--metadata", metadata).stdout
    assert f"this is not the metadata's only in-sync replica, which has topic ID {ORDERS} and should be here" in shown
    assert "partition 1 is STALE_ID on broker 2, where the metadata has the only in-sync replica" in shown


def test_a_finding_of_the_fleet_names_what_it_is_about(cluster: Cluster, run: Run) -> None:
    doctor = ("doctor", cluster.log_dirs[1], "--metadata", saved(cluster, 2))
    said = (
        "fleet: ONLY_IN_SYNC_COPY. Where the metadata has the only in-sync replica of a partition, there is a finding."
    )
    assert f"{said} orders: partition 1 is STALE_ID on broker 2" in words(run(*doctor))
    (broker,) = json.loads(run(*doctor, "--format", "json").stdout)["brokers"]
    assert broker["fleet"][0]["subject"] == "orders"


def test_what_a_live_replica_keeps_from_coming_back_is_not_said_to_be_restored(cluster: Cluster, run: Run) -> None:
    """Where the name is free it is."""
    log_dir, metadata = cluster.log_dir(1), saved(cluster, 1, 2)
    stray = log_dir / stray_name("orders", 0, UNIQUE)
    shutil.copytree(log_dir / "orders-0", stray)
    stage_replica(str(log_dir), 1, FAR_AWAY_MS)
    shutil.copytree(log_dir / "orders-0", log_dir / "orders-1")
    long_written(log_dir)
    wants = f"the metadata wants topic ID {ORDERS} here"

    def evidence() -> dict[str, str]:
        document = json.loads(run("audit", log_dir, "--metadata", metadata, "--all", "--format", "json").stdout)
        return {each["verdict"]: each["evidence"] for each in document["findings"]}

    found = evidence()
    assert found["STRAY"] == f"a broker moved it aside; {wants}, but a replica is live in its place"
    assert found["STAGED"] == f"staged, and {wants}, but a replica is live in its place"
    for name in ("orders-0", "orders-1"):
        shutil.rmtree(log_dir / name)
    found = evidence()
    assert found["STRAY"] == f"a broker moved it aside, but {wants}: restore it"
    assert found["STAGED"] == f"staged, but {wants}: restore it"


def test_a_stray_with_a_live_replica_in_its_place_is_led_to_its_way_out_and_not_to_the_same_plan(
    cluster: Cluster, run: Run
) -> None:
    log_dir, metadata = cluster.log_dir(1), saved(cluster, 1, 2)
    stray = log_dir / stray_name("orders", 0, UNIQUE)
    shutil.copytree(log_dir / "orders-0", stray)
    long_written(log_dir)
    strays = ("plan", log_dir, "--metadata", metadata, "--strays")
    assert "no action is planned; what is left alone has" in run(*strays).stderr.splitlines()[-1]
    (left,) = json.loads(run(*strays, "--format", "json").stdout)["left_alone"]
    assert left["next"] == f"logstore doctor {log_dir} --metadata {metadata}"
    shown = words(run(*shlex.split(left["next"])[1:]))
    assert f"mv -nT {stray} {log_dir}.{stray.name}" in shown


def test_what_is_marked_for_deletion_goes_beside_a_running_broker_too(cluster: Cluster, run: Run) -> None:
    """The metadata may not know yet that the topic is deleted, or made anew, so it is said as of when it speaks."""
    log_dir, metadata = cluster.log_dir(1), saved(cluster, 1, 2)
    shutil.copytree(log_dir / "orders-0", log_dir / delete_name("orders", 0, UNIQUE))

    def evidence() -> str:
        document = json.loads(run("audit", log_dir, "--metadata", metadata, "--format", "json").stdout)
        return next(str(each["evidence"]) for each in document["findings"] if each["verdict"] == "MARKED_DELETE")

    soon = "a broker deletes it 60 s after it marked it, or after its next start"
    assert evidence() == f"{soon}; a replica of the partition is live on this broker, as after a move between log dirs"
    (log_dir / "orders-0").rename(log_dir / "orders-7")
    assert evidence() == f"{soon}; as of the metadata, topic ID {ORDERS} is wanted here"


def test_of_a_broker_that_runs_it_is_not_said_how_it_was_stopped(cluster: Cluster, in_use: str, run: Run) -> None:
    result = run("preflight", in_use, "--metadata", cluster.metadata)
    assert "startup_aborts" in result.stdout and "the last stop" not in result.stdout
    last = result.stderr.splitlines()[-1]
    assert last.endswith("KRaft mode would not start here, while another process has the log dirs open")
    shown = words(run("doctor", in_use, "--metadata", saved(cluster, 1, 2)))
    assert "would not start here, while another process has the log dirs open Nothing has to be done." in shown


def test_what_is_the_last_stop_of_a_stopped_broker_is_said(cluster: Cluster, run: Run) -> None:
    result = run("preflight", cluster.log_dirs[0], "--metadata", cluster.metadata)
    assert "the last stop was not a clean one" in result.stdout


def test_ok_by_a_brokers_own_metadata_is_ok_no_further_than_its_log_dir_either(cluster: Cluster, run: Run) -> None:
    path = f"{cluster.log_dirs[0]}/orders-0"
    shown = words(run("explain", path, "--metadata", saved(cluster, 1, 2, keeper=1)))
    assert "it is this broker's own copy, and nothing since is known" in shown
    assert "seen where that one is named with --log-dir" in shown


def test_a_staged_stray_without_a_topic_id_has_none(cluster: Cluster, run: Run, tmp_path: Path) -> None:
    log_dir, metadata = cluster.log_dir(1), saved(cluster, 1, 2)
    stray = log_dir / stray_name("orders", 0, UNIQUE)
    shutil.copytree(log_dir / "orders-0", stray)
    (stray / "partition.metadata").unlink()
    long_written(log_dir)
    plan = tmp_path / "plan.json"
    planned = run("plan", log_dir, "--metadata", metadata, "--strays", "--strays-without-id", "-o", plan)
    assert run("apply", plan).exit_code == 0, planned.output
    (row,) = json.loads(run("staged", log_dir, "--format", "json").stdout)["rows"]
    assert (row["state"], row["topic_id"]) == ("staged", None)
    gone = run("purge", log_dir, "--location", stray.name, "--before-due", "--dry-run").stdout
    assert f"purge {stray.name}: orders-0, without a topic ID, " in gone


def test_a_record_that_lies_elsewhere_is_not_called_a_brokers_doing(cluster: Cluster, run: Run) -> None:
    stray = cluster.log_dir(1) / stray_name("orders", 7, UNIQUE)
    stray.mkdir()
    said = "no record here says when it may go: a broker left it, or its record lies elsewhere"
    assert said in run("staged", cluster.log_dirs[0]).stdout
    assert f"keep {stray.name}: {said}" in run("purge", cluster.log_dirs[0]).stdout


def test_a_staging_root_that_may_not_be_listed_is_not_taken_for_the_log_dir(
    cluster: Cluster, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_dir = cluster.log_dirs[0]
    stage_replica(log_dir, 0, FAR_AWAY_MS)

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("logstore.fs.Directory.directory_inodes", refuse)
    for verb in ("staged", "purge"):
        result = run(verb, log_dir, *(["--dry-run"] if verb == "purge" else []))
        assert result.exit_code == 4
        assert f"logstore: {log_dir}: what is staged cannot be listed: Permission denied" in result.stderr


@pytest.mark.parametrize("beside", [True, False])
def test_a_plan_for_one_disk_of_two_brings_nothing_back_that_may_be_live_on_the_other(
    cluster: Cluster, run: Run, tmp_path: Path, beside: bool
) -> None:
    """The other one lies beside it, or is known by what the broker registered alone."""
    folder, other = tmp_path / "two", DirectoryId.from_halves(77, 9)
    first = make_log_dir(folder / "1", 1, {"orders-0": ORDERS, "orders-1": ORDERS})
    if beside:
        second = make_log_dir(folder / "2", 1, {"orders-1": ORDERS})
        identity = MetaProperties(1, CLUSTER, 1, other)
        (second / meta_properties.FILE_NAME).write_bytes(meta_properties.encode(identity, "today"))
    stage_replica(str(first), 1, FAR_AWAY_MS)
    builder = DesiredBuilder()
    for partition in range(2):
        builder.partition("orders", str(ORDERS), partition, [1], isr=[1], leader=1)
    builder.broker(1, 1, False, [str(DirectoryId.from_halves(77, 1)), str(other)])
    (tmp_path / "now").mkdir()
    now_ms = time.time_ns() // 1_000_000
    parquet.save_state(
        builder.build(MetadataIdentity("kraft", "x", CLUSTER, timestamp_ms=now_ms)), str(tmp_path / "now")
    )
    planned = json.loads(run("plan", first, "--metadata", tmp_path / "now", "--format", "json").stdout)
    assert planned["actions"] == []
    (left,) = [each for each in planned["left_alone"] if each["verdict"] == "STAGED"]
    assert left["reason"].endswith(": give every log dir of the broker")
    why = f"orders-1 is live in {folder}/2/orders-1, which was not given" if beside else f"directory.id {other} is none"
    assert why in left["reason"]
    assert "OTHER_LOG_DIR" in words(run(*shlex.split(left["next"])[1:]))
