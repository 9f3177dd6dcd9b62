from __future__ import annotations

from reconciler.simulator.controller.active import Extension
from tests.reconciler.simulator.controller.cluster import ID, Cluster, Notes, at


def test_an_extension_is_made_at_each_election_and_is_called_in_order() -> None:
    made: list[Extension] = []

    class Counted(Notes):
        def __init__(self, active) -> None:
            super().__init__(active)
            made.append(self)

    cluster = Cluster(3, controllers=(1, 2), extensions=(Counted,))
    cluster.create_topic("orders", {0: [3], 1: [3]}, ID)
    cluster.controller.work.deletions.begin_partitions([at("orders", 1)])
    cluster.settle()
    cluster.kill(1)
    assert [each.told for each in made] == [["loaded", "started", (at("orders", 1),)], ["loaded", "started"]]
    assert cluster.controller.extensions == made[1:]


def test_what_was_being_deleted_under_another_controller_is_deleted_when_the_extension_asks_again() -> None:
    class Again(Notes):
        def started(self) -> None:
            super().started()
            if at("orders", 1) in self.active.core.context.assignments:
                self.active.deletions.begin_partitions([at("orders", 1)])

    cluster = Cluster(3, controllers=(1, 2), extensions=(Again,))
    cluster.create_topic("orders", {0: [3], 1: [3]}, ID)
    cluster.brokers[3].silent = True
    cluster.controller.work.deletions.begin_partitions([at("orders", 1)])
    cluster.kill(1)
    cluster.brokers[3].silent = False
    cluster.timers.pass_time(10_000)
    assert list(cluster.topic("orders").partitions) == [0]


def test_two_extensions_take_part_in_the_order_in_which_they_were_given() -> None:
    class Other(Notes):
        pass

    cluster = Cluster(1, extensions=(Other, Notes))
    assert [type(each) for each in cluster.controller.extensions] == [Other, Notes]


def test_a_controller_has_no_extensions_unless_it_is_given_some() -> None:
    assert Cluster(1).controller.extensions == []
