"""Creating a topic: by counts or by an assignment (KIP4-3, CREATE-1, CREATE-2).

The topic's node, with its ID, and its configs are one transaction; the controller sees the node and creates the
partitions. As with Kafka's tools, a broker that is away may be named in an assignment by hand.
"""

from __future__ import annotations

from random import Random

from layout.ids import TopicId
from layout.topic import METADATA_TOPIC, has_collision, has_collision_chars, namespace_of
from logstore import KafkaError
from reconciler.simulator.admin.commands import NOT_GIVEN, CommandRefusedError, CreateTopic
from reconciler.simulator.admin.configs import check_configs, first_configs
from reconciler.simulator.admin.controller_node import ControllerNode
from reconciler.simulator.admin.zookeeper_namespaces import check_no_tiers, check_usable
from reconciler.simulator.placement import Assignment
from reconciler.simulator.zookeeper import (
    Create,
    Delete,
    check_name,
    delete_partitions_path,
    delete_path,
    read_topics,
    topic_path,
)
from reconciler.sources.zookeeper import encode_topic


def create_topic(node: ControllerNode, wanted: CreateTopic, random: Random) -> None:
    """Create a topic; ``random`` draws its ID, and an assignment by counts.

    Raises:
        InvalidNameError: it cannot have this name.
        CommandRefusedError: 36, it exists or is going; 17, its namespace was not created, its name is the same as
            another's in metrics, or a namespace has the directory of one of its partitions; 40 for its configs; 37
            and 38 for counts that are not given.
        AssignmentError: 37, 38, 39: there can be no such assignment.
    """
    _check_free(node, wanted.topic)
    check_configs(wanted.configs)
    replicas = _assignment(node, wanted, random)
    check_no_tiers(node, wanted.topic, replicas)
    taken = {topic.topic_id for topic in read_topics(node.session).values()}
    topic_id = TopicId.random(random.randbytes)
    while str(topic_id) in taken:
        topic_id = TopicId.random(random.randbytes)
    # A request for fewer partitions that an older topic of this name left behind is not this topic's.
    left = delete_partitions_path(wanted.topic)
    try:
        node.commit(
            [
                *([Delete(left)] if node.session.find(left) is not None else []),
                *first_configs(node, wanted.topic, wanted.configs),
                Create(topic_path(wanted.topic), encode_topic(topic_id, replicas)),
            ]
        )
    except CommandRefusedError as error:
        if error.error is KafkaError.INVALID_REQUEST:
            _check_free(node, wanted.topic)  # somebody else may have created it since it was looked for
        raise


def _check_free(node: ControllerNode, topic: str) -> None:
    check_name(topic)
    if topic == METADATA_TOPIC:
        raise _bad_name(f"{topic} is the controllers' own; take another name")
    check_usable(node, namespace_of(topic))
    here = node.session.find(topic_path(topic))
    if here is not None:
        what = "exists already" if here.data else "is a namespace"
        raise CommandRefusedError(KafkaError.TOPIC_ALREADY_EXISTS, f"{topic} {what}; take another name")
    if node.session.find(delete_path(topic)) is not None:
        raise CommandRefusedError(KafkaError.TOPIC_ALREADY_EXISTS, f"{topic} is being deleted; wait until it is gone")
    if has_collision_chars(topic):
        others = [other for other in read_topics(node.session) if other != topic and has_collision(topic, other)]
        if others:
            raise _bad_name(f"{topic} would be one with {others[0]} in metrics: . and _ are the same there")


def _assignment(node: ControllerNode, wanted: CreateTopic, random: Random) -> Assignment:
    brokers = node.known_brokers()
    if wanted.assignment:
        node.placement.check_by_hand(brokers, wanted.assignment)
        return {partition: tuple(replicas) for partition, replicas in sorted(wanted.assignment.items())}
    if wanted.partitions == NOT_GIVEN:
        raise CommandRefusedError(
            KafkaError.INVALID_PARTITIONS, f"{wanted.topic}: give the number of partitions, or an assignment"
        )
    if wanted.factor == NOT_GIVEN and wanted.partitions > 0:
        raise CommandRefusedError(
            KafkaError.INVALID_REPLICATION_FACTOR, f"{wanted.topic}: give a replication factor, or an assignment"
        )
    return node.placement.create(brokers, wanted.partitions, wanted.factor, random)


def _bad_name(message: str) -> CommandRefusedError:
    return CommandRefusedError(KafkaError.INVALID_TOPIC_EXCEPTION, message)
