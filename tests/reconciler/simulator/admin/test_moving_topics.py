"""Topics that move to another namespace keep their ID, and all that belongs to them goes along."""

from __future__ import annotations

import pytest

from layout.topic import TopicPartition
from reconciler.simulator.admin import CommandOutcome, CreateTopic
from reconciler.simulator.admin.acls import Acl, AclOperation, set_acls
from reconciler.simulator.zookeeper import kafka_nodes, kafka_paths
from tests.reconciler.simulator.admin.admin_bench import AdminBench


@pytest.mark.parametrize("target", ["org:apache:kafka", ""])
def test_a_topic_moves_with_its_id_its_states_its_configs_and_its_acls(
    apache: AdminBench, target: str
) -> None:  # KIP37-3, KIP516-13
    source, wanted = "org:apache:orders", f"{target}:orders".lstrip(":")
    apache.admin.create_topics([CreateTopic(source, 2, 2, configs={"segment.ms": "5"})])
    set_acls(apache.session, [Acl("User:a", AclOperation.READ)], topic=source)
    apache.lead(TopicPartition(source, 1), 2, [1, 2], epoch=9)
    before = apache.topic(source)
    assert apache.admin.move_topic(source, target) == CommandOutcome()
    assert apache.topic(wanted) == before
    state = kafka_nodes.decode_state(apache.session.get(kafka_paths.state_path(TopicPartition(wanted, 1))).data)
    assert state is not None and (state.leader, state.leader_epoch) == (2, 9)
    assert kafka_nodes.decode_config(apache.session.get(kafka_paths.config_path(wanted)).data) == {"segment.ms": "5"}
    assert not [path for path in apache.zookeeper.dump() if path.endswith("/org/apache/orders")]
    assert apache.admin.list_topics() == [wanted]
    births = {
        apache.session.get(each).czxid for each in apache.zookeeper.dump() if each.endswith(wanted.replace(":", "/"))
    }
    assert len(births) == 1


@pytest.mark.parametrize(
    ("topic", "namespace", "error"),
    [
        ("nothing", "org", 3),
        ("orders", "net", 17),
        ("orders", "a_b", 17),
        ("orders", "", 36),
        ("orders", "org", 36),
        ("going", "org:apache", 17),
    ],
)
def test_a_topic_that_cannot_move_stays(apache: AdminBench, topic: str, namespace: str, error: int) -> None:
    apache.admin.create_topics([CreateTopic(each, 1, 1) for each in ("orders", "org:orders", "going")])
    apache.admin.delete_topics(["going"])
    before = apache.zookeeper.dump()
    assert apache.admin.move_topic(topic, namespace).error == error
    assert apache.zookeeper.dump() == before
