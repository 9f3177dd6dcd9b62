"""The output of ``kafka-topics --describe`` as a metadata source: ``describe:FILE`` and ``describe-all:FILE``.

A topic is one line, followed by a line for each partition; tabs separate the fields (spaces, when pasted)::

    Topic: orders  TopicId: 51_5T2LkTm2W04vd3WnljQ  PartitionCount: 1  ReplicationFactor: 2  Configs: a=b,c=d
            Topic: orders  Partition: 0  Leader: 1  Replicas: 1,2  Isr: 1,2  Adding Replicas: 3  Elr:  LastKnownElr:

Before Kafka 2.8 there is no ``TopicId``, and before 2.3 no blank behind a colon. Unknown fields are ignored. Unknown
lines are refused: a warning or an error of the tool inside the text means that something may be missing.

The text does not say whether it covers all topics. ``--topic`` and missing rights leave topics out, and a text that was
cut between two topics looks whole. So a topic that ``describe:`` does not mention counts as not mentioned, never as
unwanted; with ``describe-all:`` the user vouches that every topic is in the file. The text has no cluster ID, no time
and no leader epochs. The output of ``kafka-log-dirs`` is recognised in order to refuse it: it says which replicas
brokers have, not which they should have. Source: DESIGN §7.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

from layout.errors import InvalidIdError, InvalidNameError, excerpt
from layout.ids import TopicId
from layout.topic import check_full_topic_name
from reconciler.desired import Completeness, DesiredBuilder, DesiredState, MetadataIdentity
from reconciler.errors import MetadataError, UsageError
from reconciler.sources.files import first_bytes, read_file
from reconciler.sources.zookeeper import marked_for_deletion
from reconciler.text import count, listed

SHOWN_REASONS = 5
"""The most reasons that a message lists."""

HEADER = re.compile(r"\s*Topic:\s*\S+\s+(?:TopicId:\s*\S+\s+)?PartitionCount:")
"""Matches the beginning of the line of a topic."""

_SNIFFED_BYTES = 64 << 10


_FIELD = re.compile(r"(?:^|(?<=\s))((?:Adding |Removing )?[A-Z][A-Za-z]*):")
_CONFIGS = re.compile(r"\sConfigs:.*?(?=\sMarkedForDeletion:\s*(?:true|false)\s*$|$)", re.DOTALL)
_NOT_SAID = "N/A"
"""Stands for eligible leader replicas where the broker that was asked does not tell them."""
_NUMBER = re.compile(r"[0-9]{1,10}", re.ASCII)
_INT32_MAX = 2**31 - 1
_LOG_DIRS = (re.compile(r"\{"), re.compile(r'"brokers"\s*:'), re.compile(r'"logDirs"\s*:'))
"""What stands in the output of kafka-log-dirs, in this order; one pattern for all would try every pair of places."""


@dataclass(frozen=True, slots=True)
class DescribedPartition:
    """The line of one partition; ``leader`` is -1 for none."""

    partition: int
    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    eligible: tuple[int, ...] = ()
    """The eligible leader replicas, which count while the ISR is empty (KIP-966)."""
    last_known: tuple[int, ...] = ()
    """The last leader, which counts once nobody else may lead."""


@dataclass(slots=True)
class DescribedTopic:
    """One topic; ``topic_id`` is canonical text, or None where the output has none."""

    topic: str
    topic_id: str | None
    partition_count: int
    is_marked: bool
    """It is marked for deletion."""
    partitions: dict[int, DescribedPartition] = field(default_factory=dict)


def recognises(path: str) -> bool:
    """Whether the path is a file that begins like the output of kafka-topics, or of kafka-log-dirs, to refuse it."""
    if not os.path.isfile(path):
        return False
    text = first_bytes(path, _SNIFFED_BYTES).decode("utf-8", "replace")
    return HEADER.match(text) is not None or is_log_dirs(text)


def load_one(paths: Sequence[str], location: str, completeness: Completeness) -> DesiredState:
    """Read the only file; several files have no cluster or age to choose by.

    Raises:
        UsageError: there is no such file, or there are several.
        MetadataError: it cannot be read, or is not the complete output of the tool.
    """
    if len(paths) > 1:
        raise UsageError(
            f"{location} holds {len(paths)} outputs of kafka-topics, which tell neither their cluster nor their age"
            f" ({listed(paths)}): name the one that holds"
        )
    return load(paths[0], completeness)


def load(path: str, completeness: Completeness = Completeness.INCREMENTAL) -> DesiredState:
    """Read one file; FULL means that the user vouches for every topic. Raises as :func:`load_one`."""
    data = read_file(path)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MetadataError(f"{path} is no UTF-8 text: write the output of kafka-topics --describe anew") from error
    topics = parse(text, path)
    builder = DesiredBuilder()
    for topic in topics:
        _add_topic(builder, topic)
    return builder.build(
        MetadataIdentity(
            "describe",
            path,
            completeness=completeness,
            digest=hashlib.sha256(data).hexdigest(),
            problems=tuple(_problems(topics, completeness)),
        )
    )


def _add_topic(builder: DesiredBuilder, topic: DescribedTopic) -> None:
    builder.topic(topic.topic, topic.topic_id)
    for partition in topic.partitions.values():
        builder.partition(
            topic.topic,
            topic.topic_id,
            partition.partition,
            partition.replicas,
            isr=partition.isr or partition.eligible or partition.last_known,
            adding=partition.adding,
            removing=partition.removing,
            leader=partition.leader,
        )


def _problems(topics: Sequence[DescribedTopic], completeness: Completeness) -> list[str]:
    problems = ["the output of kafka-topics names neither its cluster nor its time, so neither can be checked"]
    if completeness is not Completeness.FULL:
        problems.append(
            "whether all topics are in it is not known, so topics that are not in it are not judged; describe-all:"
            " vouches that they are"
        )
    marked = [topic.topic for topic in topics if topic.is_marked]
    if marked:
        problems.append(marked_for_deletion(marked))
    return problems


def is_log_dirs(text: str) -> bool:
    """Whether a text is the output of ``kafka-log-dirs --describe``, which lists the replicas that brokers have."""
    end = 0
    for each in _LOG_DIRS:
        found = each.search(text, end)
        if found is None:
            return False
        end = found.end()
    return True


def parse(text: str, location: str) -> list[DescribedTopic]:
    """Read the output of ``kafka-topics --describe``.

    Raises:
        MetadataError: it is another text, is cut off, or contradicts itself; with the first reasons and their lines.
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
    reader = _DescriptionReader()
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


class _DescriptionReader:
    """Reads line by line, and gathers every reason why the text is not a complete output."""

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
            self._wrong(f"{excerpt(line, 80)} is the line of no topic and of no partition, or is cut off")

    def finish(self) -> None:
        """Check that every topic has as many partitions as it claims."""
        for topic in self.topics.values():
            said = f"topic {topic.topic} has {count(topic.partition_count, 'partition')} by its own line"
            missing = list(islice((each for each in range(topic.partition_count) if each not in topic.partitions), 3))
            beyond = [each for each in sorted(topic.partitions) if each >= topic.partition_count]
            if missing:
                more = topic.partition_count - len(topic.partitions) + len(beyond) - len(missing)
                shown = ", ".join(map(str, missing)) + (f" and {more} more" if more > 0 else "")
                self.reasons.append(f"{said}, and the line of partition {shown} is not there")
            elif beyond:
                self.reasons.append(f"{said}, numbered from 0, and partition {beyond[0]} is listed")
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
        partitions = self._number("PartitionCount", fields["PartitionCount"])
        self.topics[name] = DescribedTopic(name, topic_id, partitions, fields.get("MarkedForDeletion") == "true")

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
            self._eligible("Elr", fields),
            self._eligible("LastKnownElr", fields),
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
        self._wrong(f"{name}: a number is expected, found {excerpt(text, 40)}")
        return 0

    def _brokers(self, name: str, text: str) -> tuple[int, ...]:
        brokers = tuple(self._number(name, each.strip()) for each in text.split(",")) if text else ()
        if len(set(brokers)) < len(brokers):
            self._wrong(f"{name}: a broker is there twice: {excerpt(text, 40)}")
        return brokers

    def _eligible(self, name: str, fields: dict[str, str]) -> tuple[int, ...]:
        text = fields.get(name, _NOT_SAID)
        return () if text == _NOT_SAID else self._brokers(name, text)

    def _wrong(self, reason: str) -> None:
        self.reasons.append(f"line {self._at}: {reason}")
