"""``--metrics``: a file for node_exporter, from each command that has it, replaced as a whole or left as it was."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from prometheus_client.parser import text_string_to_metric_families

from logstore.fs import TEMPORARY
from reconciler.cli import logstore
from reconciler.cli.frame import Exit, say_incomplete
from reconciler.cli.monitoring import MetricsFile, metrics_option, metrics_topics_option
from reconciler.errors import UsageError
from reconciler.metrics import OTHER_TOPICS, Readings
from tests.reconciler.cli.conftest import OLD_ORDERS, Cluster, make_log_dir

Run = Callable[..., Result]
VERBS = ("scan", "audit", "plan", "apply", "purge")


def read(path: Path) -> dict[str, dict[tuple[str, ...], float]]:
    """Metric → values of its labels but command and cluster, in the order of their names → value."""
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(path.read_text(encoding="utf-8")):
        for sample in family.samples:
            labels = tuple(value for name, value in sorted(sample.labels.items()) if name not in ("command", "cluster"))
            found.setdefault(sample.name, {})[labels] = sample.value
    return found


@pytest.fixture
def wasteful(cluster: Cluster) -> Cluster:
    """Broker 2 also holds replicas of three topics that the cluster does not know, each larger than the one before."""
    make_log_dir(cluster.folder / "made", 9, {f"gone-{topic}-0": OLD_ORDERS for topic in range(3)})
    for topic in range(3):
        folder = cluster.log_dir(2) / f"gone-{topic}-0"
        os.rename(cluster.folder / "made" / f"gone-{topic}-0", folder)
        (folder / "00000000000000000000.log").write_bytes(bytes(100_000 * (topic + 1)))
        for file in [*folder.iterdir(), folder]:
            os.utime(file, (1_700_000_000, 1_700_000_000))
    return cluster


def test_every_step_from_a_scan_to_a_purge_leaves_its_metrics(wasteful: Cluster, run: Run, tmp_path: Path) -> None:
    one, two = wasteful.log_dirs
    compared, plan = ["--metadata", wasteful.metadata], tmp_path / "plan.json"
    files = {verb: tmp_path / f"logstore_{verb}.prom" for verb in VERBS}
    asked = {
        "scan": [one, two],
        "audit": [one, two, *compared, "--metrics-topics", "2"],
        "plan": [one, two, *compared, "--max-share", "90%", "-o", plan, "--delay", "0s"],
        "apply": [plan],
        "purge": [one, two],
    }
    codes = {verb: run(verb, *asked[verb], "--metrics", files[verb]).exit_code for verb in VERBS}
    found = {verb: read(files[verb]) for verb in VERBS}
    assert codes == {"scan": 0, "audit": 1, "plan": 1, "apply": 0, "purge": 0}
    assert {verb: found[verb]["logstore_run_exit_code"][()] for verb in VERBS} == codes
    assert [found[verb]["logstore_run_duration_seconds"][()] > 0 for verb in VERBS] == [True] * 5
    assert found["scan"]["logstore_scanned_entries"] == {("1", "live", one): 2, ("2", "live", two): 5}
    for verb in ("audit", "plan"):
        assert found[verb]["kafka_log_orphan_partition_count"] == {("1", one): 0, ("2", two): 4}
        assert found[verb]["kafka_log_orphan_partition_size_bytes"]["2", two] > 600_000
        assert found[verb]["logstore_replicas"]["2", two, "UNKNOWN_TOPIC"] == 3
        assert found[verb]["logstore_metadata_age_seconds"]["parquet",] > 59
        assert found[verb]["logstore_scan_duration_seconds"][()] > 0
    for name in ("logstore_replicas", "logstore_replicas_size_bytes", "logstore_log_dirs"):
        assert found["audit"][name] == found["plan"][name]
    topics = found["audit"]["logstore_topic_orphan_partitions"]
    assert topics == {("gone-2",): 1, ("gone-1",): 1, (OTHER_TOPICS,): 2}
    assert found["plan"]["logstore_plan_actions"] == {("stage",): 4}
    assert found["apply"]["logstore_apply_actions"] == {("stage", "done"): 4}
    assert found["apply"]["logstore_apply_staged_size_bytes"][()] > 600_000
    assert found["purge"]["logstore_purge_directories"]["2", two, "purged"] == 4
    assert found["purge"]["logstore_staged_replicas"]["2", two, "due"] == 0
    assert sorted(path.name for path in tmp_path.glob(f"*{TEMPORARY}")) == []


def test_a_refused_plan_says_which_gates_are_shut(wasteful: Cluster, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "plan.prom"
    result = run("plan", *wasteful.log_dirs, "--metadata", wasteful.metadata, "--metrics", file)
    assert result.exit_code == 3
    assert read(file)["logstore_plan_gates_shut"] == {("share",): 1}
    assert read(file)["logstore_run_exit_code"] == {(): 3}


def test_others_may_read_the_file_whatever_the_umask_says(cluster: Cluster, run: Run, tmp_path: Path) -> None:
    file, former = tmp_path / "scan.prom", os.umask(0o077)
    try:
        assert run("scan", cluster.log_dirs[0], "--metrics", file).exit_code == 0
    finally:
        os.umask(former)
    assert stat.S_IMODE(file.stat().st_mode) == 0o644


def test_a_command_that_fails_leaves_the_metrics_of_its_last_run(cluster: Cluster, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "audit.prom"
    file.write_text("as it was")
    assert run("audit", cluster.log_dirs[0], "--metadata", tmp_path / "nothing", "--metrics", file).exit_code == 2
    assert file.read_text() == "as it was"


@pytest.mark.parametrize("verb", ["scan", "audit", "plan", "purge"])
def test_a_place_for_no_file_is_refused_before_any_work(verb: str, cluster: Cluster, run: Run, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for place, why in (
        (tmp_path / "nowhere" / "a.prom", "there is no folder"),
        (tmp_path, "is no plain file"),
        (tmp_path / "fifo", "is no plain file"),
        (cluster.log_dir(1) / "a.prom", "lies in the log dir"),
    ):
        result = run(verb, cluster.log_dirs[0], "--metrics", place)
        assert (result.exit_code, result.stdout, why in result.stderr) == (2, "", True), result.output
        assert len(result.stderr.splitlines()) == 1
    assert not (cluster.log_dir(1) / "a.prom").exists()


def test_a_file_that_cannot_be_written_in_the_end_is_one_sentence_and_exit_code_4(
    cluster: Cluster, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("reconciler.cli.monitoring.metrics_file.publish_file", refuse)
    result = run("scan", cluster.log_dirs[0], "--format", "ndjson", "--metrics", tmp_path / "a.prom")
    assert (result.exit_code, len(result.stdout.splitlines())) == (4, 3)
    assert result.stderr == f"logstore: --metrics: {tmp_path / 'a.prom'} was not written: No space left on device\n"


def test_without_the_option_nothing_is_gathered_and_no_library_is_loaded(cluster: Cluster, run: Run) -> None:
    metrics = MetricsFile(None, "scan", ())
    metrics.take(Readings.scanned, 5.0)
    assert (metrics.readings.samples, metrics.written(Exit.FINDINGS)) == ({}, Exit.FINDINGS)
    loaded = {name for name in sys.modules if name.startswith("prometheus_client")}
    for name in loaded:
        del sys.modules[name]
    assert run("scan", cluster.log_dirs[0]).exit_code == 0
    assert not [name for name in sys.modules if name.startswith("prometheus_client")]


def test_a_folder_that_takes_no_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(UsageError, match="no file can be made in"):
        MetricsFile(str(tmp_path / "a.prom"), "scan", ())


def test_the_commands_that_have_metrics_have_the_options_alike() -> None:
    for verb in VERBS:
        command = logstore.get_command(click.Context(logstore), verb)
        assert command is not None
        params = {parameter.name: parameter for parameter in command.params}
        assert "metrics_path" in params
        assert ("most_topics" in params) == (verb in ("audit", "plan"))

    @click.command()
    @metrics_option
    @metrics_topics_option
    def alike(most_topics: int, metrics_path: str) -> None:
        click.echo(f"{metrics_path} {most_topics}")

    assert CliRunner().invoke(alike, ["--metrics", "a.prom"]).stdout == "a.prom 10\n"


def test_what_is_incomplete_is_said_and_ends_with_4(capsys: pytest.CaptureFixture[str]) -> None:
    context = click.Context(logstore)
    with context:
        say_incomplete("a part is missing")
    assert (capsys.readouterr().err, list(context.meta.values())) == ("logstore: a part is missing\n", [True])
