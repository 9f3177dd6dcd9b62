"""A broker that is about to stop: others lead what it leads, and it goes out of sync where it follows.

Source: Kafka 2.8's controlled shutdown.
"""

from __future__ import annotations

from layout.topic import TopicPartition
from reconciler.simulator.controller.core import Core
from reconciler.simulator.controller.partition_machine import Election, PartitionMachine
from reconciler.simulator.controller.replica_machine import ReplicaMachine
from reconciler.simulator.controller.replica_states import Replica


def prepare_shutdown(
    core: Core, partitions: PartitionMachine, replicas: ReplicaMachine, broker: int
) -> list[TopicPartition]:
    """Take a broker that lives out of service; it may ask again until nothing is left. Sends.

    Returns:
        The partitions that it still leads, sorted; a partition with one replica is not among them, for nobody else can
        lead it.
    """
    context = core.context
    context.shutting_down.add(broker)
    affected = [
        replica.partition
        for replica in context.replicas_on({broker})
        if len(context.assignments[replica.partition].replicas) > 1
        and replica.partition in context.leadership
        and not context.is_leaving(replica.partition)
    ]
    led = [each for each in affected if context.leadership[each].leader == broker]
    partitions.to_online(led, Election.SHUTDOWN)
    core.batch.send()
    replicas.to_offline(Replica(each, broker) for each in affected if each not in led)
    core.batch.send()
    return [each for each in affected if context.leadership[each].leader == broker]
