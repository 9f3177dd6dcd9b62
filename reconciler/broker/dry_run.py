"""The dry run of a control request: what the broker would answer, and where each change would lie.

The decision is that of a real request; only the places are foreseen here: the name under which a replica is staged, and
the log dir of a new replica. The disks are read where these depend on them: a name that is taken, or a namespace that
was never created. A failing or full disk cannot be foreseen. Source: DESIGN §4, §6.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from layout.directory_name import staged_name
from layout.errors import LayoutError
from layout.ids import TopicId
from layout.scheme import Scheme, check_namespace_fits, partition_path
from layout.topic import Namespace, TopicPartition
from logstore import (
    ChangeFailedError,
    InconsistentTopicIdError,
    InvalidNamespaceError,
    LogStoreError,
    NameTakenError,
    OfflineLogDirError,
)
from logstore.journal import is_namespace_dir
from logstore.log_dir import LogDir
from logstore.rows import MetadataState
from logstore.staging import STAGING_BATCH_SIZE, Placement, choose_placement, name_below_log_dir
from logstore.store import Entry, LogStore, entry_of, spread_over_log_dirs
from reconciler.broker.broker import answer_from, decide
from reconciler.broker.carry_out import answer_to_failed_creation
from reconciler.broker.decision import Decision, Outcome, WantedReplica
from reconciler.broker.effects import Effect, EffectKind, in_order, live_effect
from reconciler.broker.memory import BrokerMemory, KnownEpochs
from reconciler.protocol import ControlRequest, ControlResponse


def dry_run_request(
    store: LogStore, request: ControlRequest, node_id: int, known: KnownEpochs | None = None
) -> tuple[ControlResponse, list[Effect]]:
    """Return the answer of a broker that has just started, and the effects of the request. Nothing is changed.

    Args:
        store: open; it must not change meanwhile.
        request: checked.
        node_id: of the broker.
        known: of requests before this one; None: the request is believed.

    Raises:
        LogStoreError: a disk cannot be listed, so nobody knows what the request would do.
    """
    memory = BrokerMemory(known=known or KnownEpochs())
    foreseen = _Foresight(store)
    decision = decide(store, request, node_id, memory)
    if not isinstance(decision, Decision):
        return decision, []
    outcome = foreseen.outcome(decision)
    return answer_from(decision, outcome, memory), in_order(outcome.effects)


class _Foresight:
    """Where the changes of a decision would lie, and which of them would fail."""

    def __init__(self, store: LogStore) -> None:
        self.store = store
        self.log_dirs = {each.path: each for each in store.log_dirs if each.path not in store.offline}
        self.taken = {(each.log_dir, each.location) for each in store.staged()}
        self.vacated: set[tuple[str, str]] = set()
        """Log dir and path of the replicas that would be staged: their names are free then."""

    def outcome(self, decision: Decision) -> Outcome:
        """Foresee the outcome of a decision."""
        outcome, offline = Outcome(), bool(self.store.offline)
        outcome.staged = set(decision.stale)
        outcome.effects += self._staged(decision)
        for each in decision.nameless:
            entry = self.store.entries()[each.at.topic, each.at.partition]
            if entry.state == MetadataState.MISSING:
                place = (entry.log_dir, entry.path)
                outcome.effects.append(live_effect(EffectKind.TOPIC_ID_WRITTEN, each.at, each.topic_id, *place))
            else:
                outcome.answers[each.place] = InconsistentTopicIdError.kafka_error
        empty = []
        for wanted in decision.wanted:
            if not outcome.may_be_made(wanted, some_offline=offline):
                continue
            if wanted.staged is None or wanted.back is None:
                empty.append(wanted)
                continue
            at, back = wanted.back.partition, (wanted.back.log_dir, wanted.back.path)
            outcome.effects.append(live_effect(EffectKind.RESTORED, at, wanted.staged.topic_id, *back))
        self._create(empty, outcome)
        return outcome

    def _staged(self, decision: Decision) -> Iterator[Effect]:
        now_ms, places = self.store.clock.now_ms(), dict[str, Placement]()
        copies = [(copy.partition, entry_of(copy), *reason) for copy, reason in decision.copies.items()]
        stale = [(TopicPartition(*key), *each) for key, each in decision.stale.items()]
        for at, entry, verdict, evidence in (*copies, *stale):
            if entry.log_dir not in places:
                places[entry.log_dir] = choose_placement(self.log_dirs[entry.log_dir])
            self.vacated.add((entry.log_dir, entry.path))
            location = self._free_location(at, entry, places[entry.log_dir])
            due_ms = now_ms + self.store.settings.of(at.topic, decision.delay)
            lies = (at.topic, at.partition, entry.topic_id, entry.log_dir, location)
            yield Effect(EffectKind.STAGED, *lies, verdict, evidence, due_ms)

    def _free_location(self, at: TopicPartition, entry: Entry, placement: Placement) -> str:
        """Choose the name of a staged replica; ``*`` stands for a stray's random digits, which are not drawn."""
        if placement is Placement.IN_PLACE:
            return f"{at.local_topic}-{at.partition}.*-stray"
        topic_id = TopicId.ZERO if entry.topic_id is None else TopicId.parse(entry.topic_id)
        copy, log_dir = 1, self.log_dirs[entry.log_dir]
        while True:
            location = name_below_log_dir(log_dir, placement, staged_name(topic_id, at.partition, copy))
            if (entry.log_dir, location) not in self.taken:
                self.taken.add((entry.log_dir, location))
                return location
            copy += 1

    def _create(self, wanted: list[WantedReplica], outcome: Outcome) -> None:
        """Foresee creations, spread over the log dirs as the store spreads them."""
        if not self.log_dirs:
            error = OfflineLogDirError("every log dir of this store is offline")
            outcome.answers |= dict.fromkeys((each.place for each in wanted), error.kafka_error)
            return
        counts = self._counts(outcome) if wanted else Counter[str]()
        by_log_dir = {path: counts[path] for path in self.log_dirs}
        places, empty = {each.at: each.place for each in wanted}, {each.at: each.topic_id for each in wanted}
        for path, batch in spread_over_log_dirs(by_log_dir, empty, STAGING_BATCH_SIZE):
            for at, topic_id in batch.items():
                try:
                    home = self._home_of_new(self.log_dirs[path], at, topic_id)
                except (LogStoreError, LayoutError) as error:
                    outcome.answers[places[at]] = answer_to_failed_creation(error)
                else:
                    outcome.effects.append(live_effect(EffectKind.CREATED, at, topic_id, path, home))

    def _counts(self, outcome: Outcome) -> Counter[str]:
        """Count the live replicas of each log dir, as they would be by then; each copy of a duplicate counts."""
        counts = Counter(entry.log_dir for entry in self.store.entries().values())
        counts.update(copy.log_dir for copy in self.store.duplicates)
        counts.subtract(each.log_dir for each in outcome.effects if each.kind is EffectKind.STAGED)
        counts.update(each.log_dir for each in outcome.effects if each.kind is EffectKind.RESTORED)
        return counts

    def _home_of_new(self, log_dir: LogDir, partition: TopicPartition, topic_id: TopicId | None) -> str:
        """Return the path of a new replica below its log dir; raise the error of a real creation."""
        path = partition_path(log_dir.scheme, partition, topic_id)
        folder, _, name = path.rpartition("/")
        try:
            if partition.namespace and log_dir.scheme is Scheme.NAMESPACED:
                check_namespace_fits(log_dir.path, Namespace.parse(partition.namespace))
                if not is_namespace_dir(log_dir.root, folder):
                    raise InvalidNamespaceError(
                        f"namespace {partition.namespace} was not created in {log_dir.path}: create it first"
                    )
            with log_dir.root.below(folder) as home:
                if home.holds(name) and (log_dir.path, path) not in self.vacated:
                    raise NameTakenError(f"{home.path_of(name)} is there already; nothing is ever overwritten")
        except FileNotFoundError:
            return path  # the prefix directory of a topic ID is created when it is needed
        except OSError as error:
            raise ChangeFailedError(f"{log_dir.path}/{folder} cannot be looked at: {error.strerror}") from error
        return path
