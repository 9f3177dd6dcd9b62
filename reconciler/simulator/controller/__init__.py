"""A controller as in Kafka 2.8 with ZooKeeper, and with KIP-516's requests and deletions.

::

    controller           Controller: election, resignation, AlterIsr, what an administrator may ask of it
    active               what a controller has from its election to its resignation: all that is below
    core                 what those parts share
    watches              a change in ZooKeeper becomes one look at the nodes
    settings, errors     what it can be told; what can go wrong
    context              what it knows of the cluster
    cluster_nodes        what it reads and writes in ZooKeeper; each write on condition that it is not fenced
    state_table          which thing is in which state; refuses what is no transition
    partition_states     the four states of a partition, and the legal transitions
    replica_states       the seven states of a replica, and the legal transitions
    elections            who leads, by cause
    partition_machine    what happens on the way between states: leaders, in-sync sets, znodes
    replica_machine      the same for replicas
    batch, channels      requests to brokers: composed, queued, one in flight to each
    failover             what a controller does first
    broker_changes       brokers that come, go, and come back unseen; log dirs that fail
    topic_changes        topics and partitions that come, topics that go
    garbage              topics deleted at once: their replicas are collected later (KIP516-10)
    deletion             topics deleted as before, and some of a topic's partitions (KIP694-3)
    reassignment         other replicas for a partition, and preferred leaders
    dropped              the replicas that a reassignment dropped, until they are deleted
    isr_changes          AlterIsr requests
    shutdown             brokers that are about to stop
    extensions           how fewer partitions (``fewer_partitions``) take part
    assignment           which brokers get a new topic's replicas

A controller that is fenced, or whose session is over, forgets everything and stands for election again.
"""

from reconciler.simulator.controller.assignment import (
    Assignment,
    AssignmentError,
    assign,
    check_added_by_hand,
    check_by_hand,
)
from reconciler.simulator.controller.controller import Controller
from reconciler.simulator.controller.fewer_partitions import (
    FewerPartitionsRequest,
    FewerPartitionsSettings,
    decode_fewer_partitions,
    encode_fewer_partitions,
    fewer_partitions_extension,
)
from reconciler.simulator.controller.settings import ControllerSettings

__all__ = [
    "Assignment",
    "AssignmentError",
    "Controller",
    "ControllerSettings",
    "FewerPartitionsRequest",
    "FewerPartitionsSettings",
    "assign",
    "check_added_by_hand",
    "check_by_hand",
    "decode_fewer_partitions",
    "encode_fewer_partitions",
    "fewer_partitions_extension",
]
