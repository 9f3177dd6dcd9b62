"""The administrator's commands of a simulated cluster: KIP-4's, namespaces, configs, ACLs, and fewer partitions.

All commands are asynchronous: they write nodes into ZooKeeper, the controller's watches do the rest, and describe shows
when it is done. One command's writes are one transaction, so a controller that crashes leaves all of it or nothing.

KIP-4's errors, and the numbers that Kafka gave them; where rows share a number, the messages tell them apart::

    TopicAlreadyExists                              36
    InvalidArgumentTopicName                        17    also: the namespace was not created, the topic is going
    InvalidArgumentPartitions                       37
    DecreasePartitionsNotAllowed                    37
    InvalidArgumentReplicationFactor                38
    InvalidArgumentReplicaAssignment                39
    InvalidArgumentTopicConfig                      40
    PreferredReplicaLeaderElectionInProgress        42    Kafka has no number of its own for it
    ReassignPartitionsInProgress                    60
    MultipleInstructionsForOneTopic                 42
    MultipleTopicInstructionsInOnebatch             42
    and Kafka's: not the controller 41, unknown topic 3, unknown topic ID 100, a name and an ID of two topics 103,
    not allowed 29, and 42 where neither a name nor an ID is given
"""

from reconciler.simulator.admin.admin import Admin
from reconciler.simulator.admin.alter import warnings_of
from reconciler.simulator.admin.broker_namespaces import BrokerNamespaces
from reconciler.simulator.admin.commands import (
    NOT_GIVEN,
    AlterTopic,
    CommandOutcome,
    CreateTopic,
    GivenPartition,
    GivenTopic,
    TopicDescription,
    TopicKey,
)
from reconciler.simulator.admin.delete import DeletePartitions
from reconciler.simulator.admin.describe import is_created, with_lags

__all__ = [
    "NOT_GIVEN",
    "Admin",
    "AlterTopic",
    "BrokerNamespaces",
    "CommandOutcome",
    "CreateTopic",
    "DeletePartitions",
    "GivenPartition",
    "GivenTopic",
    "TopicDescription",
    "TopicKey",
    "is_created",
    "warnings_of",
    "with_lags",
]
