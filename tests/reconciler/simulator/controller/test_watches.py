from __future__ import annotations

from reconciler.simulator.controller.active import Active
from reconciler.simulator.zookeeper import kafka_nodes, kafka_paths
from tests.reconciler.simulator.controller.cluster import ID, Cluster, Notes, at


class Watching(Notes):
    """Watches the requests for fewer partitions."""

    def paths(self) -> list[str]:
        return [kafka_paths.DELETE_PARTITIONS]


def count_looks(cluster: Cluster, monkeypatch) -> list[str]:
    looks: list[str] = []
    nodes, read = cluster.controller.work.core.nodes, type(cluster.controller.work.core.nodes).topics

    def counted(self):
        looks.append("topics")
        return read(self)

    monkeypatch.setattr(type(nodes), "topics", counted)
    return looks


def test_many_changes_at_once_lead_to_one_look(monkeypatch) -> None:
    cluster = Cluster(1)
    looks = count_looks(cluster, monkeypatch)
    for number in range(20):
        data = kafka_nodes.encode_topic(None, {0: [1]})
        cluster.admin.create(kafka_paths.topic_path(f"topic-{number}"), data)
    cluster.settle()
    assert len(cluster.controller.context.assignments) == 20
    # One for the topics, one for the IDs that the controller wrote into their nodes.
    assert len(looks) <= 3


def test_what_controllers_write_into_states_leads_to_no_look(monkeypatch) -> None:
    cluster = Cluster(2)
    cluster.create_topic("orders", {0: [1, 2]}, ID)
    looks = count_looks(cluster, monkeypatch)
    cluster.alter_isr(at("orders"), [1])
    assert looks == []


# KIP694-3
def test_an_extension_is_told_what_changes_below_its_paths() -> None:
    cluster = Cluster(1, extensions=(Watching,))
    path = kafka_paths.delete_partitions_path("orders")
    cluster.admin.create(path, b"{}")
    cluster.settle()
    assert cluster.controller.extensions[0].told == ["loaded", "started", path]


def test_an_extension_of_a_controller_that_resigned_is_told_nothing() -> None:
    cluster = Cluster(1, extensions=(Watching,))
    (extension,) = cluster.controller.extensions
    cluster.controllers[1].stop()
    cluster.admin.create(kafka_paths.delete_partitions_path("orders"), b"{}")
    cluster.settle()
    assert extension.told == ["loaded", "started"]
    assert isinstance(extension.active, Active)
