"""Play records in order into an image of the metadata: topics, partitions, brokers and features (FACTS §7.6).

Only records that matter to *what should be on this broker* are decoded, and records that delimit transactions. Other
known types cannot change the answer, so their bodies are skipped. Unknown types are counted.

The records of KIP-694 are those that it draws (``PROPOSED_RECORDS``). A partition is leaving from the record that says
so until a later record makes it one to read and write, or the topic goes: KIP-694 has no record for its end. Meanwhile
its replicas may be there or not, as those that a reassignment removes (KIP694-3).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from layout.errors import InvalidNameError
from layout.ids import DirectoryId, TopicId
from layout.topic import check_full_topic_name
from reconciler.errors import MetadataError
from reconciler.protocol import KIP694_NUMBER, METADATA_RECORDS
from reconciler.sources.kraft.records import Frame, RecordDecoder, read_frame
from reconciler.text import count

METADATA_VERSION = "metadata.version"
NO_CHANGE_OF_LEADER = -2

_BEGIN, _END, _ABORT = 23, 24, 25
_MIGRATING = DirectoryId.MIGRATING.to_bytes()


_ASSIGNMENT = ("replicas", "addingReplicas", "removingReplicas")
"""Fields that say which brokers hold a partition; a change record leaves out those that stay as they are."""


class ReplayError(MetadataError):
    """A record that contradicts the state before it; the caller adds its position."""


@dataclass(slots=True)
class PartitionRegistration:
    """One partition. ``directories`` has 16 bytes for each replica, or is empty where none of them is known."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    removing: tuple[int, ...]
    adding: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    directories: tuple[bytes, ...]
    leaving: bool = False
    """It is to be deleted while its topic stays (KIP694-3)."""
    eligible: tuple[int, ...] = ()
    """Brokers out of the ISR that have every committed record all the same (KIP-966)."""
    last_known: tuple[int, ...] = ()
    """The last leader, once nobody else may lead."""

    @property
    def in_sync(self) -> tuple[int, ...]:
        """The brokers whose copies count: those among which the controller elects a leader, in its order.

        Where it keeps eligible leader replicas, as releases from 4.1 do of themselves, the ISR is empty once the last
        broker in it has stopped. Before, that broker stayed in the ISR.
        """
        return self.isr or self.eligible or self.last_known


@dataclass(slots=True)
class TopicImage:
    """One topic, with its partitions by number."""

    name: str
    partitions: dict[int, PartitionRegistration] = field(default_factory=dict)


@dataclass(slots=True)
class BrokerRegistration:
    """One registered broker, with the IDs of its log dirs as 16 bytes each."""

    epoch: int
    fenced: bool
    in_controlled_shutdown: bool
    directories: tuple[bytes, ...]


class MetadataImage:
    """The state after the records played so far.

    Attributes:
        topics: by topic ID, 16 bytes.
        brokers: by node ID.
        features: level by name.
        removed_topics: names of removed topics, by topic ID.
        unknown_types: the number of records of each unknown type.
        touched: offset of the last record that created, removed or reassigned a topic, by topic ID.
    """

    def __init__(self) -> None:
        self.topics: dict[bytes, TopicImage] = {}
        self.brokers: dict[int, BrokerRegistration] = {}
        self.features: dict[str, int] = {}
        self.removed_topics: dict[bytes, str] = {}
        self.unknown_types: Counter[int] = Counter()
        self.touched: dict[bytes, int] = {}
        self._decoder = RecordDecoder()
        self._transaction: list[tuple[int, Frame, bytes]] | None = None
        self._begun_at = -1

    @property
    def open_transaction(self) -> tuple[int, int] | None:
        """The offset at which the open transaction began, and the number of its records; None when none is open."""
        return None if self._transaction is None else (self._begun_at, len(self._transaction))

    def play(self, offset: int, value: bytes) -> None:
        """Play the value of one data record.

        Inside a transaction it takes effect when the transaction ends, or never.

        Raises:
            MalformedMessageError: the value cannot be decoded.
            ReplayError: it contradicts the state; inside a transaction, the message names the record.
        """
        frame = read_frame(value)
        if frame.type in (_BEGIN, _END, _ABORT):
            self._delimit(offset, frame, value)
        elif self._transaction is not None:
            self._transaction.append((offset, frame, value))
        else:
            self._apply(offset, frame, value)

    def check(self) -> None:
        """Check the final state: every topic has a legal name, and no two topics have the same name.

        Raises:
            ReplayError: a topic breaks this rule.
        """
        names: dict[str, bytes] = {}
        for topic_id, topic in self.topics.items():
            try:
                check_full_topic_name(topic.name)
            except InvalidNameError as error:
                raise ReplayError(f"the topic of ID {TopicId(topic_id)}: {error}") from error
            if topic.name in names:
                both = f"{TopicId(names[topic.name])} and {TopicId(topic_id)}"
                raise ReplayError(f"two topics are named {topic.name}: {both}")
            names[topic.name] = topic_id

    def _delimit(self, offset: int, frame: Frame, value: bytes) -> None:
        self._decoder.decode(frame, value)
        if frame.type == _BEGIN:
            if self._transaction is not None:
                raise ReplayError(f"a transaction begins inside the one that began at offset {self._begun_at}")
            self._transaction, self._begun_at = [], offset
            return
        if self._transaction is None:
            raise ReplayError("a transaction ends that never began")
        waiting, self._transaction = self._transaction, None
        if frame.type == _END:
            for at, inner, inner_value in waiting:
                try:
                    self._apply(at, inner, inner_value)
                except MetadataError as error:
                    raise ReplayError(f"the record at offset {at} of its transaction: {error}") from error

    def _apply(self, offset: int, frame: Frame, value: bytes) -> None:
        apply = _APPLIERS.get(frame.type)
        if apply is not None:
            fields = self._decoder.decode(frame, value)
            apply(self, fields)
            if "topicId" in fields and any(fields.get(name, True) is not None for name in _ASSIGNMENT):
                self.touched[fields["topicId"]] = offset
        elif frame.type not in METADATA_RECORDS:
            self.unknown_types[frame.type] += 1

    def _add_topic(self, fields: dict[str, Any]) -> None:
        topic_id: bytes = fields["topicId"]
        if not any(topic_id):
            raise ReplayError(f"topic {fields['name']!r:.260} is created under the zero topic ID")
        if topic_id in self.topics:
            raise ReplayError(f"topic ID {TopicId(topic_id)} of {self.topics[topic_id].name} is created again")
        self.topics[topic_id] = TopicImage(fields["name"])

    def _remove_topic(self, fields: dict[str, Any]) -> None:
        topic = self.topics.pop(fields["topicId"], None)
        if topic is None:
            raise ReplayError(f"topic ID {TopicId(fields['topicId'])} is removed, but there is no such topic")
        self.removed_topics[fields["topicId"]] = topic.name

    def _set_partition(self, fields: dict[str, Any]) -> None:
        topic, index = self._topic_of(fields)
        if index < 0:
            raise ReplayError(f"partition {index} of {topic.name}")
        if "mode" in fields:
            self._set_with_mode(topic, index, fields)
            return
        replicas, directories = fields["replicas"], fields["directories"]
        _check_directories(topic, index, replicas, directories)
        topic.partitions[index] = PartitionRegistration(
            replicas,
            fields["isr"],
            fields["removingReplicas"],
            fields["addingReplicas"],
            fields["leader"],
            fields["leaderEpoch"],
            fields["partitionEpoch"],
            _known_directories(directories),
            eligible=fields["eligibleLeaderReplicas"] or (),
            last_known=fields["lastKnownElr"] or (),
        )

    def _set_with_mode(self, topic: TopicImage, index: int, fields: dict[str, Any]) -> None:
        """Set a partition by the form of KIP-694; what that form has no field for stays as it was."""
        if fields["mode"] not in (-1, 0, 1):
            raise ReplayError(f"partition {topic.name}-{index} of mode {fields['mode']}, only -1, 0 and 1 are known")
        before = topic.partitions.get(index)
        stays = before is not None and before.replicas == fields["replicas"]
        topic.partitions[index] = PartitionRegistration(
            fields["replicas"],
            fields["isr"],
            fields["removingReplicas"] or (),
            fields["addingReplicas"] or (),
            fields["leader"],
            fields["leaderEpoch"],
            0 if before is None else before.partition_epoch + 1,
            before.directories if before is not None and stays else (),
            leaving=fields["mode"] != 0,
            eligible=() if before is None else before.eligible,
            last_known=() if before is None else before.last_known,
        )

    def _delete_partition(self, fields: dict[str, Any]) -> None:
        topic, index = self._topic_of(fields, "deletePartitions")
        partition = topic.partitions.get(index)
        if partition is None:
            raise ReplayError(f"partition {topic.name}-{index} is to be deleted, but there is no such partition")
        partition.leaving = True

    def _change_partition(self, fields: dict[str, Any]) -> None:
        topic, index = self._topic_of(fields)
        partition = topic.partitions.get(index)
        if partition is None:
            raise ReplayError(f"partition {topic.name}-{index} is changed, but there is no such partition")
        if fields["replicas"] is not None:
            partition.replicas = fields["replicas"]
        if fields["isr"] is not None:
            partition.isr = fields["isr"]
        if fields["eligibleLeaderReplicas"] is not None:
            partition.eligible = fields["eligibleLeaderReplicas"]
        if fields["lastKnownElr"] is not None:
            partition.last_known = fields["lastKnownElr"]
        if fields["removingReplicas"] is not None:
            partition.removing = fields["removingReplicas"]
        if fields["addingReplicas"] is not None:
            partition.adding = fields["addingReplicas"]
        if fields["leader"] != NO_CHANGE_OF_LEADER:
            partition.leader = fields["leader"]
            partition.leader_epoch += 1
        partition.partition_epoch += 1
        if fields["directories"] is not None:
            partition.directories = _known_directories(fields["directories"])
        _check_directories(topic, index, partition.replicas, partition.directories)

    def _clear_eligible(self, fields: dict[str, Any]) -> None:
        name = fields["topicName"]
        cleared = [topic for topic in self.topics.values() if name in ("", topic.name)]
        if name and not cleared:
            raise ReplayError(f"the eligible leader replicas of {name!r:.260} are cleared, but there is no such topic")
        for partition in (each for topic in cleared for each in topic.partitions.values()):
            partition.eligible = partition.last_known = ()

    def _topic_of(self, fields: dict[str, Any], number: str = "partitionId") -> tuple[TopicImage, int]:
        topic = self.topics.get(fields["topicId"])
        if topic is None:
            topic_id = TopicId(fields["topicId"])
            raise ReplayError(f"partition {fields[number]} of topic ID {topic_id}, but there is no such topic")
        return topic, fields[number]

    def _set_feature(self, fields: dict[str, Any]) -> None:
        if fields["featureLevel"] == 0 and fields["name"] != METADATA_VERSION:
            self.features.pop(fields["name"], None)
        else:
            self.features[fields["name"]] = fields["featureLevel"]

    def _register_broker(self, fields: dict[str, Any]) -> None:
        self.brokers[fields["brokerId"]] = BrokerRegistration(
            fields["brokerEpoch"], fields["fenced"], fields["inControlledShutdown"], fields["logDirs"]
        )

    def _unregister_broker(self, fields: dict[str, Any]) -> None:
        # Unregistering an unknown broker is no error, as in Kafka's own image.
        self.brokers.pop(fields["brokerId"], None)

    def _fence_broker(self, fields: dict[str, Any]) -> None:
        self._broker(fields["id"], fields["epoch"]).fenced = True

    def _unfence_broker(self, fields: dict[str, Any]) -> None:
        self._broker(fields["id"], fields["epoch"]).fenced = False

    def _change_broker(self, fields: dict[str, Any]) -> None:
        broker = self._broker(fields["brokerId"], fields["brokerEpoch"])
        fenced, leaving = fields["fenced"], fields["inControlledShutdown"]
        if fenced not in (-1, 0, 1) or leaving not in (0, 1):
            raise ReplayError(f"broker {fields['brokerId']} changes to fenced {fenced}, controlled shutdown {leaving}")
        if fenced != 0:
            broker.fenced = fenced == 1
        if leaving == 1:
            broker.in_controlled_shutdown = True
        if fields["logDirs"]:
            broker.directories = fields["logDirs"]

    def _broker(self, node_id: int, epoch: int) -> BrokerRegistration:
        broker = self.brokers.get(node_id)
        if broker is None:
            raise ReplayError(f"broker {node_id} is changed, but it is not registered")
        if broker.epoch != epoch:
            raise ReplayError(f"broker {node_id} of epoch {epoch} is changed, but it is registered with {broker.epoch}")
        return broker


def _known_directories(directories: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """Drop a list that is all *migrating*: Kafka sets this, also for an absent list, where no directory is known."""
    return directories if any(directory != _MIGRATING for directory in directories) else ()


def _check_directories(
    topic: TopicImage, index: int, replicas: tuple[int, ...], directories: tuple[bytes, ...]
) -> None:
    if directories and len(directories) != len(replicas):
        homes = count(len(directories), "directory", "directories")
        raise ReplayError(f"{topic.name}-{index} has {count(len(replicas), 'replica')} and {homes}")


_APPLIERS_BY_NAME: dict[str, Callable[[MetadataImage, dict[str, Any]], None]] = {
    "RegisterBrokerRecord": MetadataImage._register_broker,
    "UnregisterBrokerRecord": MetadataImage._unregister_broker,
    "TopicRecord": MetadataImage._add_topic,
    "PartitionRecord": MetadataImage._set_partition,
    "PartitionChangeRecord": MetadataImage._change_partition,
    "FenceBrokerRecord": MetadataImage._fence_broker,
    "UnfenceBrokerRecord": MetadataImage._unfence_broker,
    "RemoveTopicRecord": MetadataImage._remove_topic,
    "FeatureLevelRecord": MetadataImage._set_feature,
    "BrokerRegistrationChangeRecord": MetadataImage._change_broker,
    "ClearElrRecord": MetadataImage._clear_eligible,
}
_APPLIERS = {
    number: _APPLIERS_BY_NAME[message.name]
    for number, message in METADATA_RECORDS.items()
    if message.name in _APPLIERS_BY_NAME
} | {KIP694_NUMBER: MetadataImage._delete_partition}
"""By record type; other types cannot change what should be on a broker."""
