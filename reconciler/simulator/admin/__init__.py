"""What an administrator asks for: KIP-4's commands in batches, namespaces, configs, ACLs, fewer partitions.

::

    admin             Admin: every command, at one broker; only the active controller's carries it out
    commands          instructions and outcomes, as values
    controller_node   writes that fail once another controller is elected
    batches           one outcome for each topic; two instructions for one topic are refused
    create_topics alter_topics delete_topics replication describe      KIP-4's commands (KIP4-1..3)
    known_topic       a topic that a command is about: found, and not on its way out
    delete_partitions     KIP-694's request for fewer partitions, with its errors (KIP694-2)
    partition_count       the command for more or fewer partitions, and its warnings (KIP694-5)
    zookeeper_namespaces moving_topics namespace_sweep   KIP-37's: create, list, delete, move (KIP37-3)
    broker_namespaces     a broker's log dirs have the tiers that ZooKeeper has (KIP37-2)
    configs           checked, and inherited: topic, its tiers, the cluster (KIP37-5)
    acls              an authorizer: namespaces first, then the topic's own (KIP37-6)
    subscriptions     regular expressions over full names (KIP37-7)

All commands are asynchronous: they write nodes into ZooKeeper, the controller's watches do the rest, and describe shows
when it is done. One command's writes are one transaction, so a controller that crashes leaves all of it or nothing.

KIP-4's errors, and the numbers that Kafka gave them::

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
    and Kafka's: not the controller 41, unknown topic 3, unknown topic ID 100, not allowed 29
"""

from reconciler.simulator.admin.admin import Admin
from reconciler.simulator.admin.broker_namespaces import BrokerNamespaces
from reconciler.simulator.admin.commands import NOT_GIVEN, AlterTopic, CommandOutcome, CreateTopic
from reconciler.simulator.admin.delete_partitions import DeletePartitions
from reconciler.simulator.admin.describe import is_created

__all__ = [
    "NOT_GIVEN",
    "Admin",
    "AlterTopic",
    "BrokerNamespaces",
    "CommandOutcome",
    "CreateTopic",
    "DeletePartitions",
    "is_created",
]
