"""``logstore watch`` from end to end: lines, and how it ends."""

from __future__ import annotations

import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from layout.ids import TopicId
from reconciler.cli.commands import watch as watch_command
from reconciler.desired import DesiredBuilder, MetadataIdentity
from reconciler.sources import parquet
from tests.patience import PATIENCE_S

Run = Callable[..., Result]
REPOSITORY = Path(__file__).resolve().parents[4]
OLD_ORDERS = TopicId(bytes(range(100, 116)))
FIELDS = [
    "schema_version", "time_ms", "log_dir", "name", "cluster_id", "broker", "topic", "partition", "disk_topic_id",
    "metadata_topic_id", "before", "after", "bytes", "disk_bytes", "evidence", "doubt",
]  # fmt: skip


class Watching:
    """A watch in a process of its own."""

    def __init__(self, *args: object) -> None:
        command = [sys.executable, "-m", "reconciler.cli", "watch", *map(str, args)]
        self.process = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.said: list[str] = []
        while not self.said or "watching" not in self.said[-1]:
            assert self.process.stderr is not None
            line = self.process.stderr.readline().decode()
            assert line, self.said
            self.said.append(line)
        self._lines: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)

    def line(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self._lines.get(timeout=PATIENCE_S))
        return document

    def ended(self) -> tuple[int, str]:
        assert self.process.stderr is not None
        code = self.process.wait(PATIENCE_S)
        return code, self.process.stderr.read().decode()


@pytest.fixture
def watching() -> Iterator[Callable[..., Watching]]:
    started: list[Watching] = []

    def start(*args: object) -> Watching:
        started.append(Watching(*args))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.wait()
        for stream in (each.process.stdout, each.process.stderr):
            assert stream is not None
            stream.close()


def lines(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_all_that_is_not_ok_now_can_be_reported_once(cluster, run: Run) -> None:
    result = run("watch", *cluster.log_dirs, "--metadata", cluster.metadata, "--initial", "--for", 0)
    (line,) = lines(result)
    assert result.exit_code == 0
    assert list(line) == FIELDS
    assert (line["name"], line["broker"], line["before"], line["after"]) == ("orders-1", 2, "", "STALE_ID")
    assert (line["log_dir"], line["bytes"], line["schema_version"]) == (cluster.log_dirs[1], 1043, 1)
    allocated = [512 * file.stat().st_blocks for file in Path(line["log_dir"], line["name"]).iterdir()]
    assert line["disk_bytes"] == sum(allocated), "as du has it, and the tables of other commands"
    assert line["doubt"] is None, "it is an hour old, and the metadata a minute"
    assert "watching 2 log dirs with 4 entries" in result.stderr


def test_a_verdict_on_what_is_younger_than_the_metadata_is_in_doubt_as_in_an_audit(cluster, run: Run) -> None:
    (cluster.log_dir(2) / "orders-1" / "00000000000000000000.log").touch()
    asked = (*cluster.log_dirs, "--metadata", cluster.metadata)
    (line,) = lines(run("watch", *asked, "--initial", "--for", 0))
    (finding,) = json.loads(run("audit", *asked, "--format", "json").stdout)["findings"]
    assert line["doubt"] == finding["doubt"] == "CHANGED_SINCE_METADATA"


def test_without_being_asked_it_begins_with_nothing(cluster, run: Run) -> None:
    result = run("watch", *cluster.log_dirs, "--metadata", cluster.metadata, "--for", 0)
    assert (result.exit_code, result.stdout) == (0, "")


def test_bytes_are_added_up_for_the_first_lines_only(cluster, run: Run, monkeypatch: Any) -> None:
    monkeypatch.setattr(watch_command, "MOST_WEIGHED", 1)
    result = run("watch", *cluster.log_dirs, "--metadata", "none", "--initial", "--for", 0)
    assert [line["bytes"] for line in lines(result)] == [1043, None, None, None]


def test_a_name_that_is_not_utf_8_stands_with_escapes(cluster, run: Run) -> None:
    os.mkdir(os.fsencode(cluster.log_dir(1)) + b"/\xff-0")
    result = run("watch", cluster.log_dirs[0], "--metadata", cluster.metadata, "--initial", "--for", 0)
    assert [(line["name"], line["topic"], line["after"]) for line in lines(result)] == [
        ("\\xff-0", "\\xff", "UNKNOWN_TOPIC")
    ]


@pytest.mark.usefixtures("every_signal_heard")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_each_change_is_a_line_at_once_and_a_signal_ends_it(cluster, watching, number: int) -> None:
    watch = watching(cluster.log_dirs[0], "--metadata", cluster.metadata)
    shutil.rmtree(cluster.log_dir(1) / "orders-0")
    os.utime(cluster.metadata)  # as of a source that goes on; against files that stand still it would wait
    line = watch.line()
    assert (line["name"], line["before"], line["after"]) == ("orders-0", "OK", "MISSING")
    cluster.log_dir(1).rename(cluster.log_dir(1).with_name("away"))
    assert {(line["name"], line["after"]) for line in (watch.line(), watch.line())} == {
        (".", "ABSENT"), ("orders-1", "ABSENT"),
    }  # fmt: skip
    cluster.log_dir(1).with_name("away").rename(cluster.log_dir(1))
    assert {(line["name"], line["after"]) for line in (watch.line(), watch.line())} == {(".", "OK"), ("orders-1", "OK")}
    watch.process.send_signal(number)
    assert watch.ended() == (0, "")


def test_metadata_that_changes_is_loaded_again(cluster, watching) -> None:
    watch = watching(cluster.log_dirs[0], "--metadata", cluster.metadata)
    builder = DesiredBuilder()
    builder.partition("orders", str(OLD_ORDERS), 0, [1])
    cluster_id = (cluster.log_dir(1) / "meta.properties").read_text().partition("cluster.id=")[2].splitlines()[0]
    parquet.save_state(builder.build(MetadataIdentity("kraft", "a test", cluster_id)), cluster.metadata)
    assert {watch.line()["after"], watch.line()["after"]} == {"STALE_ID"}
    shutil.rmtree(cluster.metadata)
    (cluster.log_dir(1) / "orders-0").rename(cluster.log_dir(1) / "orders-7")
    assert {watch.line()["after"], watch.line()["after"]} == {"MISSING", "STALE_ID"}
    assert watch.process.stderr is not None
    assert b"holds on" in watch.process.stderr.readline()
    watch.process.send_signal(signal.SIGINT)
    assert watch.ended() == (0, "")


def test_a_reader_that_goes_ends_it_quietly_though_nothing_is_written(cluster) -> None:
    command = f"{sys.executable} -m reconciler.cli watch {cluster.log_dirs[0]} --metadata none | true"
    piped = subprocess.run(command, shell=True, cwd=REPOSITORY, capture_output=True, timeout=PATIENCE_S, check=False)
    assert piped.returncode == 0
    assert b"watching 1 log dir" in piped.stderr.splitlines()[-1]


def test_what_cannot_be_watched_is_refused(cluster, run: Run, tmp_path: Path) -> None:
    inventory = tmp_path / "inventory.parquet"
    assert run("scan", cluster.log_dirs[0], "--format", "parquet", "-o", inventory).exit_code == 0
    refused = run("watch", inventory)
    assert (refused.exit_code, "nothing ever changes" in refused.stderr) == (2, True)
    assert run("watch", tmp_path / "none").exit_code == 2
    shutil.rmtree(cluster.metadata)
    assert run("watch", cluster.log_dirs[0], "--metadata", cluster.metadata).exit_code == 2


def test_metadata_of_another_cluster_is_refused(cluster, run: Run) -> None:
    text = (cluster.log_dir(1) / "meta.properties").read_text()
    (cluster.log_dir(1) / "meta.properties").write_text(text.replace("cluster.id=", "cluster.id=x"))
    result = run("watch", cluster.log_dirs[0], "--metadata", cluster.metadata, "--for", 0)
    assert result.exit_code == 3
