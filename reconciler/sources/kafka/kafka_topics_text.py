r"""The text that ``kafka-topics --describe`` prints, read whole or refused.

A topic is one line, and a line for each partition; fields have tabs between them (spaces, when pasted)::

    Topic: orders  TopicId: 51_5T2LkTm2W04vd3WnljQ  PartitionCount: 1  ReplicationFactor: 2  Configs: a=b,c=d
            Topic: orders  Partition: 0  Leader: 1  Replicas: 1,2  Isr: 1,2  Adding Replicas: 3  Elr:  LastKnownElr:

Before Kafka 2.8 there is no ``TopicId``, and before 2.3 no blank behind a colon. Fields that are not known are passed
over, lines are not: a warning or an error of the tool in the text means that something may be missing. Owns the text;
what it makes a cluster want belongs to ``kafka_topics``. Source: DESIGN §7.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from layout.errors import InvalidIdError, InvalidNameError
from layout.ids import TopicId
from layout.topic import check_full_topic_name
from reconciler.errors import MetadataError

SHOWN_REASONS = 5
"""How many reasons a message lists."""

HEADER = re.compile(r"\s*Topic:\s*\S+\s+(?:TopicId:\s*\S+\s+)?PartitionCount:")
"""How the line of a topic begins."""

_FIELD = re.compile(r"(?:^|(?<=\s))((?:Adding |Removing )?[A-Z][A-Za-z]*):")
_CONFIGS = re.compile(r"\sConfigs:.*?(?=\sMarkedForDeletion:\s*(?:true|false)\s*$|$)", re.DOTALL)
_NUMBER = re.compile(r"[0-9]{1,10}", re.ASCII)
_INT32_MAX = 2**31 - 1
_LOG_DIRS = re.compile(r'\{.*"brokers"\s*:.*"logDirs"\s*:', re.DOTALL)


@dataclass(frozen=True, slots=True)
class DescribedPartition:
    """One partition's line; ``leader`` is -1 for none."""

    partition: int
    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


@dataclass(slots=True)
class DescribedTopic:
    """One topic; ``topic_id`` is canonical text, or None where the text has none."""

    topic: str
    topic_id: str | None
    partition_count: int
    is_marked: bool
    """It is marked for deletion."""
    partitions: dict[int, DescribedPartition] = field(default_factory=dict)


def is_log_dirs(text: str) -> bool:
    """Whether this is what ``kafka-log-dirs --describe`` prints: what brokers have, and not what they should have."""
    return _LOG_DIRS.search(text) is not None


def parse(text: str, location: str) -> list[DescribedTopic]:
    """Read the text.

    Raises:
        MetadataError: it is not that text, is cut off, or contradicts itself; with the first reasons and their lines.
    """
    if is_log_dirs(text):
        raise MetadataError(
            f"{location} is what kafka-log-dirs prints. It says which replicas brokers have, and not which they should"
            " have, so by it every replica would be right: give the output of kafka-topics --describe"
        )
    if text.strip() and not text.endswith("\n"):
        raise MetadataError(
            f"{location} does not end with a line feed, so its last line may be cut off: write the output of"
            " kafka-topics --describe to a file as a whole"
        )
    reader = _Reader()
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            reader.line(number, line.strip())
    reader.finish()
    if reader.reasons:
        more = len(reader.reasons) - SHOWN_REASONS
        shown = "; ".join(reader.reasons[:SHOWN_REASONS]) + (f"; and {more} more" if more > 0 else "")
        raise MetadataError(
            f"{location} is no whole output of kafka-topics --describe: {shown}. Write it to a file anew, without"
            " options that leave lines out"
        )
    return list(reader.topics.values())


class _Reader:
    """Takes line by line, and gathers every reason why it is not the text that it should be."""

    def __init__(self) -> None:
        self.topics: dict[str, DescribedTopic] = {}
        self.reasons: list[str] = []
        self._at = 0
        self._owners: dict[str, str] = {}

    def line(self, number: int, line: str) -> None:
        self._at = number
        is_header = HEADER.match(line) is not None
        fields = self._fields(_CONFIGS.sub("", line) if is_header else line)
        if is_header and {"Topic", "PartitionCount", "ReplicationFactor"} <= fields.keys():
            self._header(fields)
        elif not is_header and {"Topic", "Partition", "Leader", "Replicas", "Isr"} <= fields.keys():
            self._partition(fields)
        else:
            self._wrong(f"{line!r:.80} is the line of no topic and of no partition, or is cut off")

    def finish(self) -> None:
        """Check that every topic has as many partitions as it claims."""
        for topic in self.topics.values():
            found = len(topic.partitions)
            if found != topic.partition_count or (found and max(topic.partitions) != found - 1):
                self.reasons.append(
                    f"topic {topic.topic} has {topic.partition_count} partitions, and {found} are listed"
                )
        if not self.topics and not self.reasons:
            self.reasons.append("it has no topics")

    def _header(self, fields: dict[str, str]) -> None:
        name = fields["Topic"]
        try:
            check_full_topic_name(name)
        except InvalidNameError as error:
            self._wrong(str(error))
        if name in self.topics:
            self._wrong(f"topic {name} is there twice")
        topic_id = self._topic_id(name, fields.get("TopicId"))
        count = self._number("PartitionCount", fields["PartitionCount"])
        self.topics[name] = DescribedTopic(name, topic_id, count, fields.get("MarkedForDeletion") == "true")

    def _topic_id(self, name: str, text: str | None) -> str | None:
        if text is None:
            return None
        try:
            topic_id = TopicId.parse(text)
        except InvalidIdError as error:
            self._wrong(str(error))
            return None
        if topic_id.is_zero:
            return None
        if self._owners.setdefault(str(topic_id), name) != name:
            self._wrong(f"topic ID {topic_id} is that of {self._owners[str(topic_id)]} and of {name}")
        return str(topic_id)

    def _partition(self, fields: dict[str, str]) -> None:
        topic = self.topics.get(fields["Topic"])
        if topic is None:
            self._wrong(f"a partition of {fields['Topic']!r:.80}, whose own line is not before it")
            return
        leader = fields["Leader"]
        partition = DescribedPartition(
            self._number("Partition", fields["Partition"]),
            -1 if leader in ("none", "-1") else self._number("Leader", leader),
            self._brokers("Replicas", fields["Replicas"]),
            self._brokers("Isr", fields["Isr"]),
            self._brokers("Adding Replicas", fields.get("Adding Replicas", "")),
            self._brokers("Removing Replicas", fields.get("Removing Replicas", "")),
        )
        if not partition.replicas:
            self._wrong("a partition without replicas")
        if partition.partition in topic.partitions:
            self._wrong(f"{topic.topic}-{partition.partition} is there twice")
        topic.partitions[partition.partition] = partition

    def _fields(self, line: str) -> dict[str, str]:
        matches = list(_FIELD.finditer(line))
        ends = (*(match.start() for match in matches[1:]), len(line))
        fields: dict[str, str] = {}
        for match, end in zip(matches, ends, strict=False):
            if match[1] in fields:
                self._wrong(f"{match[1]}: is there twice")
            fields[match[1]] = line[match.end() : end].strip()
        return fields

    def _number(self, name: str, text: str) -> int:
        if _NUMBER.fullmatch(text) and int(text) <= _INT32_MAX:
            return int(text)
        self._wrong(f"{name}: a number is expected, found {text!r:.40}")
        return 0

    def _brokers(self, name: str, text: str) -> tuple[int, ...]:
        brokers = tuple(self._number(name, each.strip()) for each in text.split(",")) if text else ()
        if len(set(brokers)) < len(brokers):
            self._wrong(f"{name}: a broker is there twice: {text!r:.40}")
        return brokers

    def _wrong(self, reason: str) -> None:
        self.reasons.append(f"line {self._at}: {reason}")
