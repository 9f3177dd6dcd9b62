"""What a controller does first: read everything, tell everybody, elect, and go on with what its predecessor began.

Nothing is taken over but what is in ZooKeeper. Every broker gets a FULL request, so what the predecessor had deleted
and not collected is deleted by the brokers that still have it (KIP516-5, KIP516-10). Source: Kafka 2.8.

In one thing this goes beyond Kafka: a broker that went, or was restarted, while there was no controller goes out of
sync as under a controller, for a restart loses what was not synced. Kafka leaves it in sync, and it may lead.
"""

from __future__ import annotations

from reconciler.simulator.controller.active import Active
from reconciler.simulator.controller.replica_states import ReplicaState


def take_over(active: Active) -> None:
    """Begin to be the controller. Sends."""
    core, context = active.core, active.core.context
    registered = core.nodes.brokers()
    active.topics.load()
    restarted = core.nodes.restarted(context.leadership, registered)
    context.brokers = {broker: epoch for broker, epoch in registered.items() if broker not in restarted}
    for broker, epoch in context.brokers.items():
        core.channels.open(broker, epoch)
    for extension in active.extensions:
        extension.loaded()
    core.batch.update_metadata()
    core.batch.send()
    active.replicas.take_over()
    active.partitions.take_over()
    core.batch.full(context.brokers)
    if context.leadership:
        core.batch.update_metadata(context.leadership)
    active.replicas.to_online(context.replica_states.found_in(ReplicaState.ONLINE))
    core.batch.send()
    active.brokers.begin()
    active.topics.delete_marked()
    active.reassignments.resume()
    active.reassignments.from_node()
    active.brokers.log_dirs_failed()
    for extension in active.extensions:
        extension.started()
