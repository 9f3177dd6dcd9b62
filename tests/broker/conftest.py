"""Real Kafka clusters for the tests of this folder; what a machine lacks is said in the skip."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tools.real_broker.cluster import Cluster
from tools.real_broker.errors import FetchError
from tools.real_broker.fetch import class_path
from tools.real_broker.releases import EACH_WAY, Release, find_release

StartCluster = Callable[..., Cluster]

running: list[Cluster] = []
"""The clusters of the moment, whose logs a test that fails shows."""


def fetched(name: str) -> Release:
    """A release whose jars are here; skips where they cannot be had."""
    pytest.importorskip("confluent_kafka", reason="confluent-kafka, which talks to the brokers, is not installed")
    pytest.importorskip("kazoo", reason="kazoo, which talks to ZooKeeper, is not installed")
    release = find_release(name)
    try:
        class_path(release)
    except FetchError as error:
        pytest.skip(str(error))
    return release


@contextmanager
def noted(cluster: Cluster) -> Iterator[Cluster]:
    """A cluster that is started, and known to the reports of tests while it runs."""
    with cluster:
        running.append(cluster)
        try:
            yield cluster
        finally:
            running.remove(cluster)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Add the tail of every server's log to the report of a test that failed."""
    report = yield
    if report.failed and item.path.parent == Path(__file__).parent:
        for cluster in running:
            for server in cluster.servers:
                report.sections.append((f"{server.name}, {server.log}", server.tail()))
    return report


@pytest.fixture
def start_cluster(tmp_path: Path) -> Iterator[StartCluster]:
    """Starts a cluster of its own for a test that breaks it: ``start_cluster("3.9", mode="zk", brokers=3)``.

    The options are those of ``Cluster``. It is stopped at the end; all that ran is killed, whatever happens.
    """
    with ExitStack() as stack:
        count = 0

        def start(name: str, **options: Any) -> Cluster:
            nonlocal count
            count += 1
            return stack.enter_context(noted(Cluster(fetched(name), tmp_path / f"cluster-{count}", **options)))

        yield start


@pytest.fixture(scope="session")
def shared_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartCluster]:
    """Gives a cluster that all tests of a session share: ``shared_cluster("3.9", mode="zk", brokers=3)``.

    The same options give the same cluster. Whoever takes it uses topics of its own, and leaves every broker running.
    """
    with ExitStack() as stack:
        known: dict[tuple[object, ...], Cluster] = {}

        def get(name: str, **options: Any) -> Cluster:
            release = fetched(name)
            key = (release.version, *sorted(options.items()))
            if key not in known:
                folder = tmp_path_factory.mktemp("cluster") / "kafka"
                known[key] = stack.enter_context(noted(Cluster(release, folder, **options)))
            return known[key]

        yield get


@contextmanager
def two_brokers(way: tuple[str, str], factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two brokers with two disks each, of one release and mode."""
    name, mode = way
    folder = factory.mktemp("each") / "kafka"
    with noted(Cluster(fetched(name), folder, mode=mode, brokers=2, log_dirs=2)) as cluster:
        yield cluster


@pytest.fixture(scope="module", params=EACH_WAY, ids="-".join)
def each_cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two brokers with two disks each, of each release and mode in turn, one cluster at a time.

    All tests of a module share it: whoever takes it uses topics of its own, and leaves every broker running.
    """
    with two_brokers(request.param, tmp_path_factory) as cluster:
        yield cluster
