"""The dry run of a control request: what the broker would answer, and where the replica of each action would lie.

The decision is that of a real request; only the places are foreseen here: the name under which a replica is staged, and
the log dir of a new replica. The disks are read where these depend on them: a name that is taken, or a namespace that
was never created. A failing or full disk cannot be foreseen. Source: DESIGN §4, §6.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from layout.directory_name import staged_name
from layout.errors import LayoutError
from layout.ids import TopicId
from layout.scheme import Scheme, check_namespace_fits, partition_path
from layout.topic import Namespace, TopicPartition
from logstore import (
    ChangeFailedError,
    InvalidNamespaceError,
    LogStoreError,
    NameTakenError,
    OfflineLogDirError,
)
from logstore.journal import is_namespace_dir
from logstore.log_dir import LogDir
from logstore.staging import STAGING_BATCH_SIZE, Placement, choose_placement, name_below_log_dir
from logstore.store import LogStore, spread_over_log_dirs
from reconciler.broker.broker import answer_from, decide
from reconciler.broker.carry_out import answer_to_failed_creation, execute
from reconciler.broker.decision import ActionResult, DecidedAction, Decision
from reconciler.broker.memory import BrokerMemory, KnownEpochs
from reconciler.plan import Action
from reconciler.protocol import ControlRequest, ControlResponse


def dry_run_request(
    store: LogStore, request: ControlRequest, node_id: int, known: KnownEpochs | None = None
) -> tuple[ControlResponse, list[ActionResult]]:
    """Return the answer of a broker that has just started, and the result of each action. Nothing is changed.

    The store is open and must not change meanwhile; ``known`` is of requests before this one; None: the request is
    believed.

    Raises:
        LogStoreError: a disk cannot be listed, so nobody knows what the request would do.
    """
    memory = BrokerMemory(known=known or KnownEpochs())
    executor = DryRunExecutor(store)
    decision = decide(store, request, node_id, memory)
    if not isinstance(decision, Decision):
        return decision, []
    outcome = execute(decision, executor)
    return answer_from(decision, outcome, memory), outcome.results


class DryRunExecutor:
    """Foresees where the replica of each action would lie, and which actions would fail."""

    def __init__(self, store: LogStore) -> None:
        """List what is staged in a store; raises LogStoreError if a disk cannot be listed."""
        self.store = store
        self.log_dirs = {each.path: each for each in store.log_dirs if each.path not in store.offline}
        self.taken = {(each.log_dir, each.location) for each in store.staged()}
        self.counts = Counter(entry.log_dir for entry in store.entries().values())
        self.counts.update(copy.log_dir for copy in store.duplicates)
        self.vacated: set[tuple[str, str]] = set()
        """Log dir and path of the replicas that would be staged: their names are free then."""

    def stage(self, actions: Sequence[DecidedAction], delay: str) -> list[ActionResult]:
        """Choose the name of each staged replica."""
        now_ms, results = self.store.clock.now_ms(), []
        placements = {path: choose_placement(self.log_dirs[path]) for path in {each.action.log_dir for each in actions}}
        for each in actions:
            action = each.action
            self.vacated.add((action.log_dir, action.name))
            self.counts[action.log_dir] -= 1
            location = self._free_location(action, placements[action.log_dir])
            results.append(each.done(action.log_dir, location, now_ms + self.store.settings.of(action.topic, delay)))
        return results

    def _free_location(self, action: Action, placement: Placement) -> str:
        """Choose the name of a staged replica; ``*`` stands for a stray's random digits, which are not drawn."""
        if placement is Placement.IN_PLACE:
            return f"{action.replica.local_topic}-{action.partition}.*-stray"
        topic_id = TopicId.ZERO if action.topic_id is None else TopicId.parse(action.topic_id)
        copy, log_dir = 1, self.log_dirs[action.log_dir]
        while True:
            location = name_below_log_dir(log_dir, placement, staged_name(topic_id, action.partition, copy))
            if (action.log_dir, location) not in self.taken:
                self.taken.add((action.log_dir, location))
                return location
            copy += 1

    def restore(self, actions: Sequence[DecidedAction]) -> list[ActionResult]:
        """Say where each replica would be live."""
        self.counts.update(each.action.log_dir for each in actions)
        return [each.done(each.action.log_dir, each.path) for each in actions]

    def write_topic_ids(self, actions: Sequence[DecidedAction]) -> list[ActionResult]:
        """Say where each replica is that would get its topic ID."""
        return [each.done(each.action.log_dir, each.action.name) for each in actions]

    def create(self, actions: Sequence[DecidedAction]) -> list[ActionResult]:
        """Spread new replicas over the log dirs as the store spreads them."""
        if not self.log_dirs:
            error = OfflineLogDirError("every log dir of this store is offline")
            return [each.failed(error.kafka_error, str(error)) for each in actions]
        counts, found = {path: self.counts[path] for path in self.log_dirs}, dict[TopicPartition, ActionResult]()
        by_partition = {each.action.replica: each for each in actions}
        wanted = {at: each.wanted_id for at, each in by_partition.items()}
        for path, batch in spread_over_log_dirs(counts, wanted, STAGING_BATCH_SIZE):
            for at, topic_id in batch.items():
                try:
                    found[at] = by_partition[at].done(path, self._home_of_new(self.log_dirs[path], at, topic_id))
                except (LogStoreError, LayoutError) as error:
                    found[at] = by_partition[at].failed(answer_to_failed_creation(error), str(error))
        return [found[at] for at in by_partition]

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
