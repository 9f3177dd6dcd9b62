"""Every kind of bad input gets one sentence, a documented exit code, no traceback and no data: by the real command."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from layout import meta_properties
from layout.ids import TopicId
from logstore.rows import InventoryForm, inventory
from logstore.scan import scan
from reconciler.cli.frame import Exit
from reconciler.sources import load
from tests.patience import PATIENCE_S, killed_at_last
from tools.writers import kraft_writer
from tools.writers.zookeeper_writer import snapshot_bytes

REPOSITORY = Path(__file__).resolve().parents[3]
LONG = 2 << 30
"""Bytes: more than any source may take into memory because a file is that long."""


@pytest.fixture
def refused(run) -> Callable[..., str]:
    """Runs a command line that must end with this exit code and one sentence; hands the sentence over."""

    def check(code: Exit, *args: object) -> str:
        result = run(*args)
        assert isinstance(result.exception, SystemExit), result.exception
        sentences = result.stderr.splitlines()
        assert (result.exit_code, result.stdout, len(sentences)) == (code, "", 1), result.output
        return sentences[0].removeprefix("logstore: ")

    return check


@pytest.fixture
def process() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a command line in a process of its own, with changes to its environment and a command before it."""

    def started(*args: object, before: tuple[str, ...] = (), **env: str) -> subprocess.CompletedProcess[str]:
        command = [*before, sys.executable, "-m", "reconciler.cli", *map(str, args)]
        environment = {**os.environ, **env}
        return subprocess.run(
            command, cwd=REPOSITORY, capture_output=True, text=True, timeout=PATIENCE_S, env=environment, check=False
        )

    return started


def sparse(path: Path, length: int = LONG) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    os.truncate(path, length)
    return path


def written(cluster, node: int, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as out:
        inventory.write_inventory([scan(str(cluster.log_dir(node))).rows], out, InventoryForm.PARQUET)
    return path


@pytest.mark.parametrize("command", ["scan", "audit", "explain"])
def test_a_path_that_is_not_there(refused, tmp_path: Path, command: str) -> None:
    assert refused(Exit.USAGE, command, tmp_path / "absent") == f"{tmp_path}/absent: No such file or directory"


@pytest.mark.parametrize("scheme", ["", "kraft:", "zk-snapshot:", "request:", "parquet:"])
def test_metadata_that_is_not_there(refused, cluster, scheme: str) -> None:
    absent = cluster.folder / "absent"
    assert str(absent) in refused(Exit.USAGE, "audit", *cluster.log_dirs, "--metadata", f"{scheme}{absent}")


def test_a_scheme_that_is_not_known(refused, cluster) -> None:
    sentence = refused(Exit.USAGE, "audit", *cluster.log_dirs, "--metadata", "etcd:/metadata")
    assert "no scheme 'etcd'; the schemes are parquet:, kraft:, zk-snapshot:, describe:" in sentence


def test_a_layout_scheme_that_is_not_known_is_a_finding_about_the_log_dir(run, cluster) -> None:
    with (cluster.log_dir(1) / meta_properties.FILE_NAME).open("a") as file:
        file.write("logstore.scheme=zigzag\n")
    result = run("audit", cluster.log_dirs[0], "--metadata", cluster.metadata, "--format", "ndjson")
    assert result.exit_code == Exit.FINDINGS
    assert "logstore.scheme is 'zigzag', which this release does not know" in result.stdout


@pytest.mark.parametrize("command", ["scan", "audit"])
def test_a_file_for_a_log_dir(refused, tmp_path: Path, command: str) -> None:
    (tmp_path / "file").write_text("hello")
    sentence = refused(Exit.USAGE, command, tmp_path / "file")
    assert sentence == f"{tmp_path}/file is a file, and neither a log dir nor an inventory"


@pytest.mark.parametrize("scheme", ["", "zk-snapshot:", "request:"])
def test_a_fifo_for_metadata_keeps_nobody_waiting(refused, cluster, scheme: str) -> None:
    os.mkfifo(cluster.folder / "fifo")
    sentence = refused(Exit.USAGE, "audit", *cluster.log_dirs, "--metadata", f"{scheme}{cluster.folder}/fifo")
    assert f"{cluster.folder}/fifo" in sentence


def test_metadata_of_another_cluster(run, cluster) -> None:
    kraft_writer.write_metadata_dir(cluster.folder / "other", snapshot=[], cluster_id="another-cluster-entirely")
    result = run("audit", *cluster.log_dirs, "--metadata", cluster.folder / "other")
    shown, sentence = result.stderr.splitlines()
    assert (result.exit_code, result.stdout) == (Exit.REFUSED, "")
    assert "metadata: kraft" in shown
    assert "is of cluster another-cluster-entirely, the log dirs are of cluster cluster-of-the-tests: give" in sentence


def test_metadata_twice_for_one_cluster(run, cluster) -> None:
    result = run("audit", *cluster.log_dirs, "--metadata", cluster.metadata, "--metadata", cluster.metadata)
    assert (result.exit_code, result.stdout) == (Exit.REFUSED, "")
    assert "two metadata sources speak for cluster cluster-of-the-tests" in result.stderr.splitlines()[-1]


def test_a_request_that_is_none_is_reported_all_its_faults_at_once(refused, cluster) -> None:
    path = cluster.folder / "request.json"
    path.write_text(json.dumps({"controllerId": "x", "controllerEpoch": 1.5, "topicStates": [4]}))
    sentence = refused(Exit.REFUSED, "audit", *cluster.log_dirs, "--metadata", path)
    assert all(place in sentence for place in ("controllerId: ", "controllerEpoch: ", "topicStates[0]: "))


@pytest.mark.parametrize("content", [b"", b"[]", b"[" * 100_000, b"\xef\xbb\xbf{}", b"\xff\xfe", b'{"controllerId"'])
def test_a_request_that_is_no_json_object(refused, cluster, content: bytes) -> None:
    (cluster.folder / "request.json").write_bytes(content)
    sentence = refused(Exit.REFUSED, "audit", *cluster.log_dirs, "--metadata", cluster.folder / "request.json")
    assert "request.json is not a LeaderAndIsr request: " in sentence


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("kraft", f"kraft/{kraft_writer.METADATA_DIR}/00000000000000000010-0000000001.checkpoint"),
        ("zookeeper", "zookeeper/version-2/snapshot.1"),
        ("request.json", "request.json"),
    ],
)
def test_metadata_of_two_gigabytes_of_nothing(refused, cluster, spec: str, name: str) -> None:
    sparse(cluster.folder / name)
    assert spec in refused(Exit.REFUSED, "audit", *cluster.log_dirs, "--metadata", cluster.folder / spec)


def test_a_zookeeper_snapshot_that_unpacks_to_something_else(refused, cluster) -> None:
    folder = cluster.folder / "zookeeper" / "version-2"
    folder.mkdir(parents=True)
    (folder / "snapshot.1.gz").write_bytes(gzip.compress(bytes(1 << 20)))
    assert "b'ZKSN' is expected" in refused(Exit.REFUSED, "audit", *cluster.log_dirs, "--metadata", folder)


@pytest.mark.parametrize("source", ["kraft", "log", "zookeeper", "saved"])
def test_metadata_that_is_cut_short_is_refused_or_says_what_is_missing(run, cluster, source: str) -> None:
    topic_id = TopicId.from_halves(5, 5)
    records = [kraft_writer.topic_record("orders", topic_id), kraft_writer.partition_record(topic_id, 0, [1])]
    spec = cluster.folder / "source"
    if source == "zookeeper":
        spec.mkdir()
        path = spec / "snapshot.1"
        path.write_bytes(snapshot_bytes({"/brokers/topics/orders": b'{"version":2,"partitions":{"0":[1]}}'}))
    elif source == "saved":
        spec, path = Path(cluster.metadata), Path(cluster.metadata, "replicas.parquet")
    else:
        snapshot, log = (records, [[kraft_writer.no_op_record()]]) if source == "kraft" else (None, [records])
        folder = Path(kraft_writer.write_metadata_dir(spec, snapshot=snapshot, log=log))
        path = next(folder.glob("*.checkpoint" if source == "kraft" else "*.log"))
    whole, before = path.read_bytes(), load(str(spec))[0].identity
    for length in range(0, len(whole), max(1, len(whole) // 12)):
        path.write_bytes(whole[:length])
        result = run("audit", *cluster.log_dirs, "--metadata", spec)
        assert isinstance(result.exception, SystemExit), result.exception
        if result.exit_code != Exit.REFUSED:
            after = load(str(spec))[0].identity
            assert set(after.problems) - set(before.problems) or after.offset < before.offset


@pytest.mark.parametrize("length", [0, 3, 4, 5, 100, 1000])
def test_an_inventory_that_is_cut_short(refused, cluster, length: int) -> None:
    path = written(cluster, 1, cluster.folder / "one.parquet")
    os.truncate(path, length)
    sentence = refused(Exit.REFUSED, "audit", path, "--metadata", cluster.metadata)
    assert str(path) in sentence


def test_an_inventory_that_was_damaged(refused, cluster) -> None:
    path = written(cluster, 1, cluster.folder / "one.parquet")
    data = bytearray(path.read_bytes())
    data[data.index(b"orders")] ^= 1
    path.write_bytes(data)
    assert "damaged" in refused(Exit.REFUSED, "audit", path, "--metadata", cluster.metadata)


def test_an_inventory_beside_the_log_dir_that_it_tells_of_does_not_count(run, cluster) -> None:
    path = written(cluster, 1, cluster.folder / "one.parquet")
    both, alone = (
        run("audit", *paths, cluster.log_dirs[0], "--metadata", cluster.metadata, "--format", "json")
        for paths in ((path,), ())
    )
    assert json.loads(both.stdout)["totals"] == json.loads(alone.stdout)["totals"]
    assert f"1 older inventory does not count, because its log dirs were scanned again since: {path}" in both.stderr


def test_two_log_dirs_with_one_directory_id(run, cluster) -> None:
    shutil.copytree(cluster.log_dir(1), cluster.folder / "disks" / "copy")
    result = run("audit", cluster.folder / "disks", "--metadata", cluster.metadata, "--format", "json")
    assert result.exit_code == Exit.FINDINGS
    fleet = {each["kind"]: each["detail"] for each in json.loads(result.stdout)["fleet"]}
    assert "one is a copy" in fleet["DUPLICATE_DIRECTORY_ID"]


def test_an_output_that_is_an_input(refused, cluster) -> None:
    path = written(cluster, 1, cluster.folder / "one.parquet")
    before = path.read_bytes()
    assert "would be written over" in refused(Exit.USAGE, "scan", path, "--format", "parquet", "-o", path)
    assert path.read_bytes() == before


def test_a_report_into_the_metadata_or_into_a_log_dir(run, cluster) -> None:
    path = written(cluster, 1, cluster.folder / "one.parquet")
    before = sorted(cluster.folder.rglob("*"))
    for folder in (cluster.metadata, cluster.log_dir(2) / "report"):
        result = run("audit", path, "--metadata", cluster.metadata, "--report", folder)
        assert (result.exit_code, result.stdout) == (Exit.USAGE, "")
        assert str(folder) in result.stderr.splitlines()[-1]
    assert sorted(cluster.folder.rglob("*")) == before


def test_temporary_files_never_go_into_a_log_dir(process, cluster) -> None:
    result = process("audit", cluster.log_dirs[0], "--metadata", "none", TMPDIR=cluster.log_dirs[0])
    assert (result.returncode, result.stdout) == (Exit.USAGE, "")
    assert "set TMPDIR to another place" in result.stderr
    assert sorted(os.listdir(cluster.log_dirs[0])) == ["meta.properties", "orders-0", "orders-1"]


def test_no_java_for_spark(process, cluster) -> None:
    result = process(
        "audit", *cluster.log_dirs, "--metadata", "none", "--spark", PATH="/nowhere", JAVA_HOME="", SPARK_HOME=""
    )
    assert (result.returncode, result.stdout) == (Exit.REFUSED, "")
    assert "Traceback" not in result.stderr
    assert "leave out --spark" in result.stderr.splitlines()[-1]


@pytest.fixture
def bound() -> tuple[str, ...]:
    """A command that takes from root what lets it read everything; nothing for anybody else."""
    if os.geteuid() != 0:
        return ()
    if shutil.which("setpriv") is None:
        pytest.skip("root reads everything, and there is no setpriv to prevent it")
    taken = "-dac_override,-dac_read_search"
    return ("setpriv", "--bounding-set", taken, "--inh-caps", taken)


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("scan", "disks/broker-1"), Exit.PARTLY_FAILED),
        (("audit", "disks/broker-1", "--metadata", "none"), Exit.PARTLY_FAILED),
        (("audit", "closed"), Exit.USAGE),
        (("audit", "disks/broker-2", "--metadata", "closed"), Exit.REFUSED),
        (("audit", "disks/broker-2", "--metadata", "request:closed"), Exit.REFUSED),
    ],
)
def test_no_permission(process, cluster, bound, args: tuple[str, ...], code: Exit) -> None:
    (cluster.folder / "closed").write_text("hello")
    for path in (cluster.folder / "closed", cluster.log_dir(1)):
        path.chmod(0)
    try:
        here = [str(cluster.folder / each) if "/" in each or each == "closed" else each for each in args]
        here = [each.replace("request:closed", f"request:{cluster.folder}/closed") for each in here]
        result = process(*here, before=bound)
    finally:
        cluster.log_dir(1).chmod(0o755)
    assert result.returncode == code
    assert "Permission denied" in result.stdout + result.stderr
    assert "Traceback" not in result.stderr


def until_asleep(pid: int) -> None:
    """Wait until a process waits: a signal that comes just before is heard when it has waited, which may be never."""
    looks_asleep = 0
    while looks_asleep < 3:
        is_asleep = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("S")
        looks_asleep = looks_asleep + 1 if is_asleep else 0
        time.sleep(0.02)


@pytest.mark.usefixtures("every_signal_heard")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_is_reported_and_leaves_nothing_behind(cluster, tmp_path: Path, number: signal.Signals) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    # Nobody reads from this FIFO, so the run waits there for ever.
    os.mkfifo(cluster.folder / "out")
    command = [sys.executable, "-m", "reconciler.cli", "audit", *cluster.log_dirs, "--metadata", "none"]
    audit = subprocess.Popen(
        [*command, "--format", "json", "-o", str(cluster.folder / "out")],
        cwd=REPOSITORY, env={**os.environ, "TMPDIR": str(temporary)}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    with killed_at_last(audit) as running:
        assert running.stderr is not None
        while "(embedded)" not in (line := running.stderr.readline()):
            assert line, "it ended before it was interrupted"
        until_asleep(running.pid)
        running.send_signal(number)
        running.wait(PATIENCE_S)
        rest = running.stderr.read()
    assert (running.returncode, rest.count("interrupted")) == (Exit.INTERRUPTED, 1)
    assert os.listdir(temporary) == []
