"""``logstore reconcile``: handles one control request on real disks, as the broker of these disks would.

:mod:`reconciler.broker` decides what a request does, and to which gates it is held; this module has the order and
the words. A dry run always comes first, under the locks; with ``--dry-run`` it is all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from logstore import DELETE_DELAY, STALE_DELAY, Settings
from logstore.store import LogStore, StoreOptions
from reconciler.broker import (
    LOOKS_UNWANTED,
    ActionResult,
    Broker,
    CarriedOut,
    HandSentRequest,
    Judged,
    KnownEpochs,
    PartitionKey,
    RequestJournal,
    dry_run_request,
    end_cut_short,
    judge,
    last_carried_out,
    look_at_live_replicas,
    newest_files,
    older_partitions,
    reached_epochs,
    shut_gates,
)
from reconciler.cli.frame import (
    Exit,
    Format,
    InterruptedRunError,
    check_output,
    fallback_records,
    log_dirs_in,
    may_be_unread,
    parse_duration_option,
    parse_share,
    refuse_unrecovered,
    say,
    say_warnings,
    user_name,
    warn,
)
from reconciler.cli.pages import WORDS, RequestReport, error_name, write_report
from reconciler.errors import RefusedError
from reconciler.next_steps import Call
from reconciler.plan import INTERNAL_TOPICS, ActionKind, Policy, read_history
from reconciler.protocol import ControlRequest, LeaderAndIsrRequest
from reconciler.sources import STANDARD_INPUT, read_request
from reconciler.text import count, moment

_LOGGERS = ("logstore", "reconciler")


def run(
    *,
    request_spec: str,
    paths: tuple[str, ...],
    form: str,
    output: str | None,
    dry_run: bool,
    node_id: int | None,
    cluster: str | None,
    broker_epoch: int,
    delay: str | None,
    max_share: str,
    max_count: int,
    internal: tuple[str, ...],
    allowed: tuple[str, ...],
    fallback_folder: str | None,
) -> Exit:
    """Handle one LeaderAndIsr or StopReplica request, as the broker of these log dirs would. It must be stopped."""
    policy = Policy(None, None, parse_share(max_share), max_count)
    options = _store_options(delay, fallback_folder)
    log_dirs = log_dirs_in(paths)
    request, location = read_request(request_spec)
    check_output(Format(form), output, log_dirs, [] if location == STANDARD_INPUT else [location])
    with _opened(log_dirs, options, dry_run=dry_run) as store:
        own_id = _node_of(store, node_id)
        run = _RequestRun(store, request, location, own_id, broker_epoch=broker_epoch, allowed=allowed)
        report = run.dry_run(policy, cluster, internal, silent=not dry_run)
        if not dry_run and not report.refused:
            report = run.carry_out(report)
        offline = dict(store.offline)
    if report.refused and not dry_run:
        raise RefusedError(f"the request is not carried out, and nothing was changed: {'; '.join(report.refused)}")
    with may_be_unread():
        write_report(replace(report, call=Call(paths, fallback=fallback_folder)), Format(form), output)
    if run.too_old is not None:
        warn(run.too_old)
    return _say_outcome(report, partly=bool(offline))


class _RequestRun:
    """One request on one store."""

    def __init__(
        self,
        store: LogStore,
        request: ControlRequest,
        location: str,
        node_id: int,
        *,
        broker_epoch: int,
        allowed: tuple[str, ...],
    ) -> None:
        self.store, self.request, self.location, self.node_id, self.allowed = store, request, location, node_id, allowed
        self.history = read_history(log_dir.path for log_dir in store.log_dirs)
        for sentence in self.history.unreadable:
            warn(sentence)
        self.newest = last_carried_out(self.history)
        trusted = "epoch" in allowed
        last = CarriedOut() if trusted else self.newest
        self.too_old = last.refusal(request, broker_epoch)
        self.known = KnownEpochs(
            *(last.controller_epoch, max(broker_epoch, last.broker_epoch)),
            {} if trusted else reached_epochs(store, request),
        )
        self.unwanted = 0
        self.verdicts = self._verdicts()

    def dry_run(self, policy: Policy, cluster: str | None, internal: tuple[str, ...], *, silent: bool) -> RequestReport:
        """Report what would be done, and the gates that are shut; silent: without the warnings of the log."""
        with say_warnings(*_LOGGERS, silent=silent):
            response, results = dry_run_request(self.store, self.request, self.node_id, self.known)
        changes = [each for each in results if each.answer is None]
        own = next((each.identity.cluster_id for each in self.store.log_dirs), None)
        sent = HandSentRequest(
            *(self.request, self.location, self.node_id, f"broker {self.node_id} of cluster {own or 'not named'}"),
            *(len(self.store), changes, self.store.offline),
            frozenset(each.path for each in self.store.log_dirs if not each.is_ours),
            self.store.clock.now_ms(),
            cluster=cluster,
            own_cluster=own,
            unwanted=self.unwanted,
            older=older_partitions(self.request, self.known),
            internal=internal or INTERNAL_TOPICS,
            written=self._written(changes),
        )
        # A request that is refused by its epochs changes nothing, so there is nothing to hold to the gates.
        shut = shut_gates(sent, policy, self.allowed) if not response.error else []
        return RequestReport(self.request, self.location, self.node_id, True, response, self.verdicts, changes, shut)

    def _written(self, changes: Sequence[ActionResult]) -> list[tuple[str, int]]:
        """List what the disks know to have been written, and when."""
        journals = self.history.memory().written.items()
        staged = [each.action for each in changes if each.action.kind is ActionKind.STAGE]
        places = [each.path for each in self.store.log_dirs] + [f"{each.log_dir}/{each.name}" for each in staged]
        return [(f"the newest journal in {path}", ms) for path, ms in journals] + list(newest_files(places))

    def carry_out(self, planned: RequestReport) -> RequestReport:
        """Handle the request, leave its journal, and report what has changed."""
        now_ms = self.store.clock.now_ms()
        journal = RequestJournal(self.store, self.request, self.location, user_name(), now_ms)
        is_noted = not planned.response.error and (bool(planned.changes) or self.newest.is_before(self.request))
        broker = Broker(self.store, self.node_id, known=self.known)
        try:
            with say_warnings(*_LOGGERS):
                if not planned.response.error:
                    for problem in end_cut_short(self.store, self.history):
                        warn(problem)
                if is_noted:
                    journal.begin(planned.changes)
                response, results = broker.handle_with_results(self.request)
        except KeyboardInterrupt as error:
            raise InterruptedRunError(
                "interrupted; every replica is whole, live or staged. Next: the same command again does the rest"
            ) from error
        if is_noted:
            for problem in journal.end(results):
                warn(f"{problem}; this report is all that is left of it")
            for path in journal.paths():
                say(f"journal: {path}")
        changes = [each for each in results if each.answer is None]
        return RequestReport(self.request, self.location, self.node_id, False, response, self.verdicts, changes)

    def _verdicts(self) -> dict[PartitionKey, str]:
        if not isinstance(self.request, LeaderAndIsrRequest):
            return {}
        judged = judge(self.request, self.node_id, look_at_live_replicas(self.store, self.request))
        every = (*judged.named, *(each for _, each in judged.others))
        self.unwanted = sum(isinstance(each, Judged) and each.verdict in LOOKS_UNWANTED for each in every)
        named = iter(judged.named)
        return {
            (topic.topic, state.partition): found.verdict.value
            for topic in self.request.topics
            for state in topic.partitions
            if isinstance(found := next(named), Judged)
        }


def _store_options(delay: str | None, fallback_folder: str | None) -> StoreOptions:
    milliseconds = None if delay is None else parse_duration_option("--delay", delay)
    settings = (
        Settings() if milliseconds is None else Settings({"": dict.fromkeys((STALE_DELAY, DELETE_DELAY), milliseconds)})
    )
    return StoreOptions(settings=settings, fallback_records=fallback_records(fallback_folder).folder)


@contextmanager
def _opened(log_dirs: tuple[str, ...], options: StoreOptions, *, dry_run: bool) -> Iterator[LogStore]:
    """Open the store over the log dirs, under all their locks."""
    if dry_run:
        for path in log_dirs:
            refuse_unrecovered(path)
    with LogStore.open(log_dirs, options) as store:
        for path, reason in store.offline.items():
            warn(f"{path} is offline: {reason}")
        yield store


def _node_of(store: LogStore, node_id: int | None) -> int:
    """Determine the broker's ID, which must be that of the log dirs where they have one."""
    named = next((each.identity.node_id for each in store.log_dirs if each.identity.node_id is not None), None)
    if named is None and node_id is None:
        raise RefusedError("the log dirs do not say whose they are: give the broker's number with --node-id")
    if None not in (named, node_id) and named != node_id:
        raise RefusedError(f"the log dirs belong to broker {named}, and not to broker {node_id}; nothing was changed")
    found = node_id if named is None else named
    assert found is not None
    return found


def _say_outcome(report: RequestReport, *, partly: bool) -> Exit:
    """Say the outcome and the next step, and return the exit code."""
    if report.response.error:
        name = error_name(report.response.error)
        warn(f"the whole request is answered with {name} ({int(report.response.error)}), and nothing was changed")
        return Exit.REFUSED
    errors = [each.error for topic in report.response.topics for each in topic.partitions if each.error]
    answered = sum(len(topic.partitions) for topic in report.response.topics)
    failed = ", ".join(
        f"{count(errors.count(each))} with {error_name(each)} ({int(each)})" for each in sorted(set(errors))
    )
    say(f"{count(answered, 'partition')} answered: {answered - len(errors):,} with 0{f', {failed}' if failed else ''}")
    kinds = [each.action.kind for each in report.changes]
    done = ", ".join(
        f"{kinds.count(kind):,} {word.replace('_', ' ')}" for kind, word in WORDS.items() if kinds.count(kind)
    )
    say(f"{'this would be done' if report.dry_run else 'done'}: {done or 'nothing'}")
    times = [each.due_ms for each in report.changes if each.due_ms is not None]
    if times:
        due = moment(min(times))
        say(f"a purge may take what is staged from {due} on; until then the UNDO of its line brings each back")
    for reason in report.refused:
        warn(f"refused: {reason}")
    if report.refused:
        warn("without --dry-run this would be refused, and nothing would be changed")
        return Exit.REFUSED
    if errors or partly:
        return Exit.PARTLY_FAILED
    return Exit.FINDINGS if report.dry_run and report.changes else Exit.CLEAN
