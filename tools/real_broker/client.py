"""Topics and records of a running cluster, through confluent-kafka: what a test asks for, and waits until it is so.

An answer of a broker can be older than the last change, so whatever changes a topic here waits until the brokers say
what was asked for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from tools.real_broker.errors import CommandError, NotInTimeError

SECONDS = 600
"""How long anything here may take. What comes ends the wait at once, so a busy machine has all the time it needs."""

SECONDS_AN_ATTEMPT = 30
"""So long the controller may take; after twice as long without an answer the request is made anew."""

SECONDS_FOR_A_LOOK = 5
"""After so long a question is asked again, of another broker perhaps."""

PAUSE = 0.1
NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"

T = TypeVar("T")


def _library() -> Any:
    """The package ``confluent_kafka``; imported here, since most who import this module never start a cluster."""
    import confluent_kafka
    import confluent_kafka.admin

    return confluent_kafka


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition as the brokers describe it."""

    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]

    @property
    def under_replicated(self) -> bool:
        """Whether some replica is not in sync."""
        return len(self.isr) < len(self.replicas)


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic as the brokers describe it."""

    name: str
    topic_id: str | None
    """22 characters; None where it has none."""
    partitions: Mapping[int, Partition]


@dataclass(frozen=True, slots=True, order=True)
class Record:
    """One record with its place; two lists of them compare as wholes."""

    partition: int
    offset: int
    key: bytes
    value: bytes


def until(what: str, look: Callable[[], T | None], seconds: float = SECONDS) -> T:
    """Look until there is an answer that is not None (nor False).

    Raises:
        NotInTimeError: if there was none in time.
    """
    deadline = time.monotonic() + seconds
    while True:
        found = look()
        if found is not None and found is not False:
            return found
        if time.monotonic() > deadline:
            raise NotInTimeError(
                f"waited {seconds:g} s until {what}, and it did not happen; look into the brokers' logs"
            )
        time.sleep(PAUSE)


@dataclass(frozen=True, slots=True)
class View:
    """A cluster as one broker describes it."""

    brokers: frozenset[int]
    topics: frozenset[str]


def view_of(address: str) -> View | None:
    """Ask the broker at this address for its view of the cluster; None: no answer, or it knows no controller."""
    library = _library()
    # A client that is used again may ask another broker, so each look takes a new one.
    try:
        found = library.admin.AdminClient({"bootstrap.servers": address, "log_level": 0}).list_topics(timeout=2)
    except library.KafkaException:
        return None
    return View(frozenset(found.brokers), frozenset(found.topics)) if found.controller_id in found.brokers else None


class Client:
    """A client of the brokers at some addresses; it may live as long as its cluster, whatever the brokers do."""

    def __init__(self, bootstrap: str) -> None:
        """Connect at the first request, to hosts and ports with commas between them."""
        self._common = {
            "bootstrap.servers": bootstrap,
            "log_level": 0,
            "reconnect.backoff.max.ms": 500,
            "topic.metadata.refresh.fast.interval.ms": 100,
            # The most that the library takes; a busy ZooKeeper makes hundreds of partitions in more than its minute.
            "socket.timeout.ms": 300_000,
        }

    @property
    def admin(self) -> Any:
        """A new ``confluent_kafka.admin.AdminClient``; one that lives on keeps asking a controller that is gone."""
        return _library().admin.AdminClient(self._common)

    def cluster_id(self) -> str:
        """The cluster's ID, by its brokers."""
        client = self.admin
        found = self._ask("describe the cluster", lambda: client.describe_cluster(request_timeout=SECONDS))
        return str(found.cluster_id)

    def live_brokers(self) -> list[int]:
        """The brokers that are registered, in the order of their IDs."""
        return sorted(self.admin.list_topics(timeout=SECONDS).brokers)

    def topic_names(self) -> list[str]:
        """All topics, internal ones too."""
        return sorted(self.admin.list_topics(timeout=SECONDS).topics)

    def create_topic(
        self,
        name: str,
        assignment: Sequence[Sequence[int]] = ((1,),),
        settings: Mapping[str, str] | None = None,
    ) -> Topic:
        """Create a topic and wait until each partition has a leader.

        The assignment has the brokers of each partition, the preferred leader first. A request that nobody answers is
        made again; what is there after such a one is what it made.

        Raises:
            CommandError: if the cluster refuses.
            NotInTimeError: if nobody answers, or some partition gets no leader.
        """
        replicas = [tuple(brokers) for brokers in assignment]
        wanted = _library().admin.NewTopic(
            name, len(replicas), replica_assignment=[list(each) for each in replicas], config=dict(settings or {})
        )
        self._insist(
            f"create the topic {name}",
            lambda client, times: client.create_topics([wanted], operation_timeout=SECONDS_AN_ATTEMPT, **times),
            done_before=_library().KafkaError.TOPIC_ALREADY_EXISTS,
        )

        def led() -> Topic | None:
            topic = self.find_topic(name)
            parts = [topic.partitions[number] for number in sorted(topic.partitions)] if topic is not None else []
            complete = [part.replicas for part in parts] == replicas
            return topic if complete and all(part.leader for part in parts) else None

        return until(f"each partition of {name} has a leader", led)

    def delete_topic(self, name: str, wait: bool = True) -> None:
        """Delete a topic; with ``wait``, until no broker knows it.

        Raises:
            CommandError: if the cluster refuses.
            NotInTimeError: if it is still there: in ZooKeeper mode it is, as long as a broker with a replica is down.
        """
        error = _library().KafkaError
        # How long the controller waits until the replicas are gone, which the request does not need.
        seconds = 5 if wait else 1
        self._insist(
            f"delete the topic {name}",
            lambda client, times: client.delete_topics([name], operation_timeout=seconds, **times),
            done=error.REQUEST_TIMED_OUT,
            done_before=error.UNKNOWN_TOPIC_OR_PART,
        )
        if wait:
            until(f"the topic {name} is gone", lambda: name not in self.topic_names())

    def find_topic(self, name: str) -> Topic | None:
        """One topic; None: the brokers know no topic of this name.

        Raises:
            NotInTimeError: if no broker gives an answer.
        """
        library = _library()

        def answer() -> list[Any] | None:
            client = self.admin
            asked = client.describe_topics(library.TopicCollection([name]), request_timeout=SECONDS_FOR_A_LOOK)
            try:
                return [asked[name].result(SECONDS)]
            except library.KafkaException as error:
                return [] if error.args[0].code() == library.KafkaError.UNKNOWN_TOPIC_OR_PART else None

        answered = until(f"the brokers describe the topic {name}", answer)
        if not answered:
            return None
        found = answered[0]
        partitions = {
            part.id: Partition(
                part.leader.id if part.leader is not None and part.leader.id >= 0 else None,
                tuple(node.id for node in part.replicas),
                tuple(node.id for node in part.isr),
            )
            for part in found.partitions
        }
        # The client writes plain base64, Kafka the kind for URLs.
        topic_id = str(found.topic_id).replace("+", "-").replace("/", "_")
        return Topic(name, None if topic_id == NO_ID else topic_id, partitions)

    def describe_topic(self, name: str) -> Topic:
        """One topic.

        Raises:
            CommandError: if there is none of that name.
        """
        found = self.find_topic(name)
        if found is None:
            raise CommandError(f"the brokers know no topic {name}; create it first")
        return found

    def under_replicated(self) -> list[tuple[str, int]]:
        """The partitions that have a replica which is not in sync, over all topics."""
        topics = [topic for name in self.topic_names() if (topic := self.find_topic(name))]
        return [(topic.name, n) for topic in topics for n, part in topic.partitions.items() if part.under_replicated]

    def wait_until_in_sync(self, name: str, seconds: float = SECONDS) -> Topic:
        """Wait until every replica of a topic is in sync.

        Raises:
            NotInTimeError: if one does not get there.
        """

        def in_sync() -> Topic | None:
            topic = self.find_topic(name)
            late = topic is None or any(part.under_replicated for part in topic.partitions.values())
            return None if late else topic

        return until(f"every replica of {name} is in sync", in_sync, seconds)

    def produce(self, topic: str, count: int, partition: int | None = None, size: int = 100) -> list[Record]:
        """Write records, acknowledged by all replicas in sync, and give them with their places, in order.

        Without a partition each goes to one by its key; ``size`` is the least number of bytes of each value.

        Raises:
            CommandError: if one was not taken.
        """
        written: list[Record] = []
        refused: list[str] = []

        def delivered(error: Any, message: Any) -> None:
            if error is not None:
                refused.append(str(error))
            else:
                written.append(Record(message.partition(), message.offset(), message.key(), message.value()))

        producer = _library().Producer(
            {**self._common, "acks": "all", "linger.ms": 5, "message.timeout.ms": SECONDS * 1000}
        )
        where = {} if partition is None else {"partition": partition}
        stamp = time.time_ns()
        for number in range(count):
            value = f"{topic} {stamp} {number} ".encode().ljust(size, b".")
            producer.produce(topic, key=f"{stamp}-{number}".encode(), value=value, on_delivery=delivered, **where)
            producer.poll(0)
        left = producer.flush(SECONDS)
        if refused or left:
            raise CommandError(f"{len(refused) + left} of {count} records for {topic} were not taken: {refused[:3]}")
        return sorted(written)

    def consume(self, topic: str, partitions: Sequence[int] | None = None) -> list[Record]:
        """Read all records of a topic, or of some partitions of it, in the order of partition and offset.

        Raises:
            CommandError: if a partition cannot be read.
            NotInTimeError: if the end of one is not reached.
        """
        library = _library()
        wanted = list(self.describe_topic(topic).partitions) if partitions is None else list(partitions)
        consumer = library.Consumer(
            {
                **self._common,
                "group.id": "real-broker",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 50,
            }
        )
        records: list[Record] = []
        unread = set(wanted)
        try:
            consumer.assign([library.TopicPartition(topic, number, library.OFFSET_BEGINNING) for number in wanted])
            deadline = time.monotonic() + SECONDS
            while unread:
                message = consumer.poll(0.5)
                if message is None:
                    if time.monotonic() > deadline:
                        raise NotInTimeError(f"waited {SECONDS} s for the end of {topic}, partitions {sorted(unread)}")
                elif (error := message.error()) is None:
                    records.append(Record(message.partition(), message.offset(), message.key(), message.value()))
                elif error.code() == library.KafkaError._PARTITION_EOF:
                    unread.discard(message.partition())
                elif not error.retriable():
                    raise CommandError(f"{topic} cannot be read: {error}")
        finally:
            consumer.close()
        return sorted(records)

    def _insist(
        self, what: str, ask: Callable[[Any, Mapping[str, float]], Any], *, done_before: int, done: int | None = None
    ) -> None:
        """Make a request about one topic until it is answered, each time by a new client, and to the controller then.

        ``done`` is an error that says that it was carried out all the same; ``done_before``: by an attempt before,
        whose answer did not come.

        Raises:
            CommandError: if the cluster refuses.
            NotInTimeError: if nobody answers.
        """
        library = _library()
        error = library.KafkaError
        lost = (error._TIMED_OUT, error._TRANSPORT, error.REQUEST_TIMED_OUT, error.NOT_CONTROLLER)
        fine = {done}

        def answered() -> bool:
            client = self.admin
            (asked,) = ask(client, {"request_timeout": 2 * SECONDS_AN_ATTEMPT}).values()
            try:
                asked.result(SECONDS)
            except library.KafkaException as caught:
                code = caught.args[0].code()
                if code not in (*lost, *fine):
                    raise CommandError(f"the cluster did not {what}: {caught.args[0]}") from None
                fine.add(done_before)
                return code in fine
            return True

        until(f"the cluster answers the request to {what}", answered)

    def _ask(self, what: str, request: Callable[[], Any]) -> Any:
        try:
            return request().result(SECONDS)
        except _library().KafkaException as error:
            raise CommandError(f"the cluster did not {what}: {error.args[0]}") from None
