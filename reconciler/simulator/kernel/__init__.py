"""Time, chance, the network and the faults: the only source of order in the simulator.

Every random number comes from a generator that is made from the seed and a word, one for each purpose, so that the
network does not draw other numbers because a fault was switched off. Nothing here looks at the machine's own clock, at
hashes or at addresses: the same seed gives the same history in any process.
"""

from reconciler.simulator.kernel.counted_store import CountedStore
from reconciler.simulator.kernel.faults import KINDS as FAULT_KINDS
from reconciler.simulator.kernel.faults import Fault, FaultRates
from reconciler.simulator.kernel.messages import (
    ANONYMOUS,
    CONSUMER,
    DURING_DELETE,
    METADATA_WITH_MODES,
    AlterIsrRequest,
    AlterIsrResponse,
    EpochEndRequest,
    EpochEndResponse,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    LiveBroker,
    MetadataRequest,
    MetadataResponse,
    Numbered,
    OfClient,
    PartitionMetadata,
    PartitionMode,
    ProduceRequest,
    ProduceResponse,
    Record,
    Request,
    Response,
    TopicMetadata,
)
from reconciler.simulator.kernel.ports import Answer, Answered, Journal, Network, Server, Timer, Timers, broker_endpoint
from reconciler.simulator.kernel.world import START_MS, World

__all__ = [
    "ANONYMOUS",
    "CONSUMER",
    "DURING_DELETE",
    "FAULT_KINDS",
    "METADATA_WITH_MODES",
    "START_MS",
    "AlterIsrRequest",
    "AlterIsrResponse",
    "Answer",
    "Answered",
    "CountedStore",
    "EpochEndRequest",
    "EpochEndResponse",
    "Fault",
    "FaultRates",
    "FetchRequest",
    "FetchResponse",
    "Journal",
    "ListOffsetsRequest",
    "ListOffsetsResponse",
    "LiveBroker",
    "MetadataRequest",
    "MetadataResponse",
    "Network",
    "Numbered",
    "OfClient",
    "PartitionMetadata",
    "PartitionMode",
    "ProduceRequest",
    "ProduceResponse",
    "Record",
    "Request",
    "Response",
    "Server",
    "Timer",
    "Timers",
    "TopicMetadata",
    "World",
    "broker_endpoint",
]
