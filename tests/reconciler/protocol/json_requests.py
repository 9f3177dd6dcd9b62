"""LeaderAndIsr requests as JSON documents: a shipped version, and the names that KIP-516 draws."""

from __future__ import annotations

import copy
from typing import Any

from layout.ids import TopicId

ID = TopicId.parse("b8tRS7h4TJ2Vt43Dp85v2A")

SHIPPED: dict[str, Any] = {
    "controllerId": 1000,
    "isKRaftController": True,
    "controllerEpoch": 3,
    "brokerEpoch": 2**40,
    "type": 2,
    "topicStates": [
        {
            "topicName": "foo",
            "topicId": str(ID),
            "partitionStates": [
                {
                    "partitionIndex": 0,
                    "controllerEpoch": 3,
                    "leader": 1,
                    "leaderEpoch": 5,
                    "isr": [1, 2],
                    "partitionEpoch": 9,
                    "replicas": [1, 2, 3],
                    "addingReplicas": [3],
                    "removingReplicas": [],
                    "isNew": True,
                    "leaderRecoveryState": 1,
                }
            ],
        }
    ],
    "liveLeaders": [{"brokerId": 1, "hostName": "host1", "port": 9092}],
}

PROPOSED: dict[str, Any] = {
    "controller_id": 1000,
    "controller_epoch": 3,
    "broker_epoch": 2**40,
    "type": "FULL",
    "topic_states": [
        {
            "topic": "foo",
            "topic_id": str(ID),
            "partition_states": [
                {
                    "partition": 0,
                    "controller_epoch": 3,
                    "leader": 1,
                    "leader_epoch": 5,
                    "isr": [1, 2],
                    "zk_version": 9,
                    "replicas": [1, 2, 3],
                    "is_new": True,
                }
            ],
        }
    ],
    "live_leaders": [{"id": 1, "host": "host1", "port": 9092}],
}


def changed(**values: Any) -> dict[str, Any]:
    """SHIPPED with fields of its one partition replaced; ``...`` takes a field out."""
    document = copy.deepcopy(SHIPPED)
    state = document["topicStates"][0]["partitionStates"][0]
    for name, value in values.items():
        if value is ...:
            del state[name]
        else:
            state[name] = value
    return document
