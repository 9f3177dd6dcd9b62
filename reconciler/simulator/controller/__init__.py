"""A controller as in Kafka 2.8 with ZooKeeper, and with KIP-516's requests and deletions.

A controller that is fenced, or whose session is over, forgets everything and stands for election again.
"""

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
    "Controller",
    "ControllerSettings",
    "FewerPartitionsRequest",
    "FewerPartitionsSettings",
    "decode_fewer_partitions",
    "encode_fewer_partitions",
    "fewer_partitions_extension",
]
