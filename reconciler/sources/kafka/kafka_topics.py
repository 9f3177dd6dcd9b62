"""The output of ``kafka-topics --describe`` as a metadata source: ``describe:FILE`` and ``describe-all:FILE``.

The text tells topics, IDs, replicas, leaders and what a reassignment adds and removes. It does not tell whether it is
of all topics: ``--topic`` and missing rights leave topics out, and a text that was cut between two topics looks whole.
So what ``describe:`` does not mention counts as not mentioned and never as unwanted; who says ``describe-all:`` vouches
that every topic is in it. It names no cluster and no time either, and tells no leader epochs. The output of
``kafka-log-dirs`` is recognised and refused, as it says what brokers have. Owns the state; the text belongs to
``kafka_topics_text``. Source: DESIGN §7.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence

from reconciler.desired import Completeness, DesiredBuilder, DesiredState, MetadataIdentity
from reconciler.errors import MetadataError, UsageError
from reconciler.sources.first_bytes import first_bytes
from reconciler.sources.kafka import kafka_topics_text
from reconciler.sources.kafka.kafka_topics_text import DescribedTopic
from reconciler.sources.request_files import read_file
from reconciler.sources.zookeeper import first_few

_SNIFFED_BYTES = 64 << 10


def recognises(path: str) -> bool:
    """Whether the path is a file that begins like the output of kafka-topics, or of kafka-log-dirs, to refuse it."""
    if not os.path.isfile(path):
        return False
    text = first_bytes(path, _SNIFFED_BYTES).decode("utf-8", "replace")
    return kafka_topics_text.HEADER.match(text) is not None or kafka_topics_text.is_log_dirs(text)


def load_one(paths: Sequence[str], location: str, completeness: Completeness) -> DesiredState:
    """Read the only file; several cannot be told apart by cluster or age.

    Raises:
        UsageError: there is no such file, or there are several.
        MetadataError: it cannot be read, or is no whole output of the tool.
    """
    if len(paths) > 1:
        raise UsageError(
            f"{location} holds {len(paths)} outputs of kafka-topics, which tell neither their cluster nor their age"
            f" ({first_few(paths)}): name the one that holds"
        )
    return load(paths[0], completeness)


def load(path: str, completeness: Completeness = Completeness.INCREMENTAL) -> DesiredState:
    """Read one file; ``completeness`` is FULL where somebody vouches that every topic is in it; else as above."""
    data = read_file(path)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MetadataError(f"{path} is no UTF-8 text: write the output of kafka-topics --describe anew") from error
    topics = kafka_topics_text.parse(text, path)
    builder = DesiredBuilder()
    for topic in topics:
        _add(builder, topic)
    return builder.build(
        MetadataIdentity(
            "describe",
            path,
            completeness=completeness,
            digest=hashlib.sha256(data).hexdigest(),
            problems=tuple(_problems(topics, completeness)),
        )
    )


def _add(builder: DesiredBuilder, topic: DescribedTopic) -> None:
    builder.topic(topic.topic, topic.topic_id)
    for partition in topic.partitions.values():
        builder.partition(
            topic.topic,
            topic.topic_id,
            partition.partition,
            partition.replicas,
            isr=partition.isr,
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
        problems.append(
            f"{len(marked)} topics are marked for deletion and count as wanted until they go: {first_few(marked)}"
        )
    return problems
