"""A simulated broker's machine: its disks, the broker on it, its replicas' records, and the clients that use it."""

from reconciler.simulator.machine.broker import SimulatedBroker
from reconciler.simulator.machine.clients import (
    AcknowledgedRecord,
    BelievedPartition,
    ClientMetadata,
    Consumer,
    Producer,
)
from reconciler.simulator.machine.disk_faults import faults_while_running, faults_while_stopped
from reconciler.simulator.machine.host import BrokerSettings, WatchedNetwork
from reconciler.simulator.machine.replica_log import SEGMENT_FILE, decode_records, records_in

__all__ = [
    "SEGMENT_FILE",
    "AcknowledgedRecord",
    "BelievedPartition",
    "BrokerSettings",
    "ClientMetadata",
    "Consumer",
    "Producer",
    "SimulatedBroker",
    "WatchedNetwork",
    "decode_records",
    "faults_while_running",
    "faults_while_stopped",
    "records_in",
]
