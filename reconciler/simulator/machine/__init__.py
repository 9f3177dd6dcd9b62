"""A broker's machine: its disks and how they fail, its broker, its replicas' records, and the clients that use it.

::

    simulated_broker    the broker: starts, crashes, stops
      starting          from mounted disks to an open store; a disk that is new is formatted
      broker_life       between a start and an end: registration, requests to their parts, what comes round again
      broker_settings   what a broker is told
      host              who it is, and its way to time, network and history; machine_clock for the engine
      control           control requests as bytes, on to ``reconciler.broker``, and the roles that follow from them
      renaming          namespaces and new names that such a request brings
      hosted_replicas   which partitions the broker has a role for; checkpoints and flushes
        partition       one partition: leader or follower, in-sync set, high watermark
        replica_log     a replica's records in its own directory; record_lines, epoch_starts
      serving           produce, fetch, list-offsets and epoch-end; what waits there
      fetching          followers: cut off what the leader never had, then fetch (KIP-101)
      in_sync           the in-sync set shrinks and grows through the controller
      metadata_cache    what clients may be told
    producer, consumer  clients that remember what they were promised, and what they saw; client_metadata
    disks               a machine's disks as folders: mounted, failing, full, replaced; disk_faults draws which
      crash_disk        changes that a crash takes back where they were not synced; the other crash_disk modules

Source: FACTS §2.4, §4, §8; KIP516-8, KIP516-9; KIP694-1.
"""

from reconciler.simulator.machine.broker_settings import BrokerSettings
from reconciler.simulator.machine.client_metadata import ClientMetadata
from reconciler.simulator.machine.consumer import BelievedPartition, Consumer
from reconciler.simulator.machine.disk_faults import faults_while_running, faults_while_stopped
from reconciler.simulator.machine.disks import MachineDisks
from reconciler.simulator.machine.producer import AcknowledgedRecord, Producer
from reconciler.simulator.machine.record_lines import decode_records
from reconciler.simulator.machine.replica_log import SEGMENT_FILE
from reconciler.simulator.machine.simulated_broker import SimulatedBroker
from reconciler.simulator.machine.watched_network import WatchedNetwork

__all__ = [
    "SEGMENT_FILE",
    "AcknowledgedRecord",
    "BelievedPartition",
    "BrokerSettings",
    "ClientMetadata",
    "Consumer",
    "MachineDisks",
    "Producer",
    "SimulatedBroker",
    "WatchedNetwork",
    "decode_records",
    "faults_while_running",
    "faults_while_stopped",
]
