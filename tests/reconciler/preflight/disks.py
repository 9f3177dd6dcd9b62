"""Log dirs on a disk for the tests of preflight, and shortcuts to judge them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from layout import meta_properties, partition_metadata
from layout.ids import DirectoryId, TopicId
from layout.meta_properties import MetaProperties
from reconciler.desired import Completeness, DesiredBuilder, DesiredState, MetadataIdentity
from reconciler.preflight import (
    BrokerAsked,
    BrokerMode,
    KafkaRelease,
    Preflight,
    SeenBroker,
    StartEffect,
    look_at_broker,
    preflight,
)
from reconciler.preflight.rules import Finding

CLUSTER, NODE = "cluster-of-the-tests", 1
ORDERS, OTHER = TopicId(bytes(range(16))), TopicId(bytes(range(100, 116)))
HEX = "0123456789abcdef0123456789abcdef"
SEGMENT = "00000000000000000000.log"
METADATA_LOG = "__cluster_metadata-0"
METADATA_TOPIC_ID = TopicId.parse("AAAAAAAAAAAAAAAAAAAAAQ")


def directory_id(number: int) -> DirectoryId:
    return DirectoryId.from_halves(77, number)


def identity(version: int = 1, number: int = 1, **changed: object) -> MetaProperties:
    values: dict[str, object] = {"cluster_id": CLUSTER, "node_id": NODE, "directory_id": directory_id(number)}
    return MetaProperties(version, **(values | changed))  # type: ignore[arg-type]


def write_identity(folder: Path, found: MetaProperties) -> None:
    (folder / meta_properties.FILE_NAME).write_bytes(meta_properties.encode(found, "today"))


def log_dir(
    folder: Path, replicas: Mapping[str, TopicId | None] | Collection[str] = (), found: MetaProperties | None = None
) -> Path:
    """A log dir after a clean stop, with partition dirs that hold a segment and, unless None, a topic ID."""
    folder.mkdir(parents=True, exist_ok=True)
    write_identity(folder, identity() if found is None else found)
    (folder / ".kafka_cleanshutdown").write_bytes(b"")
    named = replicas if isinstance(replicas, Mapping) else dict.fromkeys(replicas, ORDERS)
    for name, topic_id in named.items():
        replica(folder / name, topic_id)
    return folder


def replica(folder: Path, topic_id: TopicId | None = ORDERS) -> Path:
    folder.mkdir()
    (folder / SEGMENT).write_bytes(bytes(100))
    if topic_id is not None:
        (folder / partition_metadata.FILE_NAME).write_bytes(partition_metadata.encode(topic_id))
    return folder


def metadata_log(folder: Path) -> Path:
    """KRaft's own log in a log dir, in order."""
    made = replica(folder / METADATA_LOG, METADATA_TOPIC_ID)
    state = b'{"leaderId":1,"leaderEpoch":2,"votedId":-1,"clusterId":"","appliedOffset":0,"currentVoters":[],'
    (made / "quorum-state").write_bytes(state + b'"data_version":0}')
    return made


def kraft_log_dir(folder: Path, replicas: Mapping[str, TopicId | None] | Collection[str] = ()) -> Path:
    metadata_log(log_dir(folder, replicas))
    return folder


def asked(release: str = "3.9", mode: str = "kraft") -> BrokerAsked:
    return BrokerAsked.of(KafkaRelease.parse(release), BrokerMode(mode))


def wanted(
    *partitions: int,
    topic_id: TopicId | None = ORDERS,
    nodes: Sequence[int] = (NODE, 2),
    isr: Sequence[int] | None = None,
    directories: Sequence[str | None] = (),
    topic: str = "orders",
    completeness: Completeness = Completeness.FULL,
) -> dict[str, DesiredState]:
    """Metadata that want these partitions of ``orders`` on these nodes; another topic is always known."""
    builder = DesiredBuilder()
    builder.topic("another", str(TopicId(bytes([9] * 16))))
    for partition in partitions:
        builder.partition(
            topic,
            None if topic_id is None else str(topic_id),
            partition,
            list(nodes),
            isr=nodes if isr is None else isr,
            leader=nodes[0],
            directories=directories,
        )
    return {CLUSTER: builder.build(MetadataIdentity("kraft", "a test", CLUSTER, completeness))}


def ask(
    where: SeenBroker | Path | Sequence[Path],
    release: str = "3.9",
    mode: str = "kraft",
    states: Mapping[str, DesiredState] | None = None,
) -> Preflight:
    """The answer for log dirs on the disk, or for evidence about them."""
    if isinstance(where, Path):
        where = [where]
    seen = where if isinstance(where, SeenBroker) else look_at_broker([str(path) for path in where])
    return preflight(seen, asked(release, mode), states or {})


def effects(answer: Preflight, notes: bool = False) -> list[tuple[str, StartEffect]]:
    """Rule and effect of each finding, notes apart unless they are asked for."""
    return [(each.rule, each.effect) for each in answer.findings if notes or each.effect is not StartEffect.NOTE]


def of_rule(answer: Preflight, rule: str) -> list[Finding]:
    return [each for each in answer.findings if each.rule == rule]
