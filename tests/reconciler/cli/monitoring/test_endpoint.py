"""``logstore watch --metrics-listen``: one path, on loopback, as long as the watch."""

from __future__ import annotations

import http.client
import re
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click
import pytest
from click.testing import CliRunner, Result

from logstore.rows import MetadataState
from logstore.watch import Watch, WatchTimes
from reconciler.cli.frame import sort_inputs
from reconciler.cli.monitoring import WatchMetrics, metrics_endpoint, metrics_listen_option, parse_address
from reconciler.errors import UsageError
from reconciler.metrics import Readings
from reconciler.sources import load
from reconciler.watch import VerdictWatch, WatchedMetadata, machine_ms, verdict_changes
from tests.patience import PATIENCE_S
from tests.reconciler.cli.conftest import Cluster

Run = Callable[..., Result]


def get(url: str, **headers: str) -> tuple[int, str, str]:
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=PATIENCE_S) as answer:
        return answer.status, answer.headers["Content-Type"], answer.read().decode()


def readings() -> Readings:
    found = Readings("watch")
    found.end(1.0, 2.0, 0)
    return found


@pytest.fixture
def url() -> Iterator[str]:
    with metrics_endpoint("0", readings) as served:
        yield served


def test_prometheus_gets_its_text_and_nobody_anything_else(url: str) -> None:
    status, content_type, text = get(url)
    assert (status, content_type.split(";")[0]) == (200, "text/plain")
    assert 'logstore_run_duration_seconds{command="watch"} 2.0' in text
    assert get(f"{url}?name=x")[0] == 200
    _, content_type, text = get(url, Accept="application/openmetrics-text; version=1.0.0")
    assert content_type.startswith("application/openmetrics-text") and text.endswith("# EOF\n")
    for other in ("/", "/metrics/", "/favicon.ico", "/../metrics", "/metricsx"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            get(url.removesuffix("/metrics") + other)
        assert (refused.value.code, refused.value.headers["Server"]) == (404, "logstore ")
        refused.value.close()


def test_it_is_only_read(url: str) -> None:
    connection = http.client.HTTPConnection(url.split("/")[2], timeout=PATIENCE_S)
    for method, status in (("HEAD", 200), ("POST", 501), ("DELETE", 501)):
        connection.request(method, "/metrics")
        answer = connection.getresponse()
        assert (answer.status, b"logstore_run" in answer.read()) == (status, False)
    connection.close()


def test_it_listens_on_loopback_unless_told_otherwise_and_ends_with_the_block() -> None:
    with metrics_endpoint("0", readings) as served:
        port = int(re.fullmatch(r"http://127\.0\.0\.1:(\d+)/metrics", served)[1])  # type: ignore[index]
        with pytest.raises(UsageError, match=rf"^--metrics-listen {port}: nothing can listen there: .* another port$"):
            metrics_endpoint(str(port), readings).__enter__()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
    assert not [thread for thread in threading.enumerate() if thread.name == "metrics"]


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("9477", ("127.0.0.1", 9477)),
        ("0.0.0.0:80", ("0.0.0.0", 80)),
        ("broker-1:9477", ("broker-1", 9477)),
        ("[::1]:9477", ("::1", 9477)),
    ],
)
def test_an_address_is_a_port_or_a_host_and_a_port(text: str, address: tuple[str, int]) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["", "x", ":9", "65536", "-1", "::1:9477", "a:b", "http://x:1", "1.5", "[::1]"])
def test_another_text_is_no_address(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--metrics-listen: .* is no address: 9477, HOST:9477 or \[::1\]:9477 is"):
        parse_address(text)


def test_readings_that_fail_are_said_and_the_endpoint_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    answers = iter([ValueError("no number"), readings()])

    def current() -> Readings:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    with metrics_endpoint("0", current) as served:
        with pytest.raises((http.client.RemoteDisconnected, urllib.error.URLError)):
            get(served)
        assert get(served)[0] == 200
    assert caplog.messages == ["metrics could not be given: ValueError: no number"]


@contextmanager
def watched(cluster: Cluster) -> Iterator[tuple[Watch, WatchMetrics, Iterator[list[object]]]]:
    states = load(cluster.metadata)
    metadata = WatchedMetadata([cluster.metadata], states, lambda _: None)
    with Watch(sort_inputs(tuple(cluster.log_dirs)).log_dirs, WatchTimes(interval=300)) as watch:
        verdicts = VerdictWatch(watch.log_dirs, machine_ms)
        metrics = WatchMetrics(watch, verdicts, metadata)
        yield watch, metrics, verdict_changes(watch, metadata, tick_s=0.05, verdicts=verdicts)  # type: ignore[misc]


def test_the_metrics_of_a_watch_follow_what_changes_on_the_disks(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reconciler.cli.monitoring.watch_metrics.WEIGHED_AT_ONCE", 1)

    def value(metrics: WatchMetrics, name: str) -> dict[tuple[str, ...], float]:
        samples = metrics.current().samples.items()
        return next((values for family, values in samples if family.name == name), {})

    one, two = cluster.log_dirs
    (cluster.log_dir(2) / "gone-0").mkdir()
    with watched(cluster) as (watch, metrics, batches):
        metrics.take(next(batches), is_first=True)  # type: ignore[arg-type]
        replicas = {labels[1:]: number for labels, number in value(metrics, "logstore_replicas").items()}
        assert replicas == {("1", one, "OK"): 2, ("2", two, "OK"): 1, ("2", two, "STALE_ID"): 1,
                            ("2", two, "UNKNOWN_TOPIC"): 1}  # fmt: skip
        assert value(metrics, "logstore_watch_verdict_changes_total") == {}
        assert value(metrics, "logstore_log_dir_online") == {(*_key(1), one): 1, (*_key(2), two): 1}
        metrics.take([])
        assert value(metrics, "kafka_log_orphan_partition_count")[*_key(2), two] == 2
        assert value(metrics, "kafka_log_orphan_partition_size_bytes")[*_key(2), two] > 1000
        assert next(iter(value(metrics, "logstore_metadata_age_seconds").values())) > 59
        cluster.log_dir(1).rename(cluster.log_dir(1).with_name("away"))
        while watch.log_dirs[one].state.state is not MetadataState.ABSENT or value(metrics, "logstore_replicas").get(
            (*_key(1), one, "OK")
        ):
            metrics.take(next(batches))  # type: ignore[arg-type]
        assert value(metrics, "logstore_replicas")[*_key(1), one, "ABSENT"] == 3, "the log dir, and what was in it"
        assert value(metrics, "logstore_log_dir_online")[*_key(1), one] == 0
        assert value(metrics, "logstore_watch_verdict_changes_total")["ABSENT",] == 3


def _key(node: int) -> tuple[str, str]:
    return "cluster-of-the-tests", str(node)


def test_a_watch_says_where_it_serves_and_a_port_that_is_taken_is_one_sentence(cluster: Cluster, run: Run) -> None:
    asked = ["watch", *cluster.log_dirs, "--metadata", cluster.metadata, "--for", "0"]
    ended = run(*asked, "--metrics-listen", "0")
    assert (ended.exit_code, re.search(r"logstore: metrics: http://127\.0\.0\.1:\d+/metrics\n", ended.stderr)) != (
        0,
        None,
    )
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = run(*asked, "--metrics-listen", str(port))
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert f"--metrics-listen {port}: nothing can listen there: Address already in use" in refused.stderr
    wrong = run(*asked, "--metrics-listen", "x")
    assert (wrong.exit_code, len(wrong.stderr.splitlines())) == (2, 1)


def test_the_option_is_one_and_belongs_to_what_goes_on() -> None:
    @click.command()
    @metrics_listen_option
    def alike(listen: str) -> None:
        click.echo(listen)

    assert CliRunner().invoke(alike, ["--metrics-listen", "9477"]).stdout == "9477\n"
