"""Rules about the directories of a log dir: by name, by ``partition.metadata``, and by whether the cluster wants them.

The order is a broker's (FACTS §1.6). First the name may end the startup, then the file may. Then a replica becomes a
stray, is kept or is deleted. Each remaining current or future replica must be there once. ``releases`` says what a
broker does at each step. Source: FACTS §1.3, §1.6-1.8, §2.1, §4.2, §6; 10.2, 10.3 rows
43-44, 60-67.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from layout.directory_name import DirectoryKind, parse
from layout.errors import BrokerEffect
from layout.scheme import STAGING_DIR, Scheme
from logstore.rows import MetadataState, utf8
from logstore.scan import DirectorySeen
from reconciler.desired import is_none_in_sync, is_only_in_sync
from reconciler.preflight.evidence import (
    UNKNOWN_WANT,
    BrokerWants,
    ReplicaWant,
    SeenBroker,
    SeenLogDir,
)
from reconciler.preflight.question import BrokerAsked
from reconciler.preflight.releases import (
    FULL_REQUEST_ASKS_TOPIC_ID_SINCE,
    STRAY_SINCE,
    STRAYS_STAY_OUT_SINCE,
    KafkaRelease,
    StartAction,
    StartAnswer,
    start_with_metadata,
)
from reconciler.preflight.rules import Finding, FindingPlace, StartEffect
from reconciler.text import count
from reconciler.verdicts import Row

EFFECT_OF = {
    StartAction.STARTUP_ABORTS: StartEffect.STARTUP_ABORTS,
    StartAction.LOG_DIR_OFFLINE: StartEffect.LOG_DIR_OFFLINE,
    StartAction.DELETED_AFTER_DELAY: StartEffect.DELETED,
    StartAction.MOVED_TO_STRAY: StartEffect.RENAMED_TO_STRAY,
}
"""Answer of ``releases`` → its effect on the disk; all other answers have none."""

_FIRST_WITH_FUTURES_RECOVERED = KafkaRelease(3, 7)
_FUTURE_BESIDE_LIVE_SINCE = KafkaRelease(3, 7, 1)
_STRAYS_DELETED_SINCE, _STRAYS_DELETED_UNTIL = KafkaRelease(3, 0), KafkaRelease(3, 7)
_COMPARES_FROM_THE_FIRST_REQUEST_ON_SINCE = KafkaRelease(3, 0)
_SEEN_TO_WRITE_IDS_TOO_LATE_UNTIL = KafkaRelease(3, 0)


@dataclass(slots=True)
class _LoadedReplicas:
    """The replicas that a broker has loaded so far, for the later rules."""

    asked: BrokerAsked
    search_fails: bool = False
    """Whether a replica without topic ID makes the whole search for strays fail (FACTS §6.1, §6.2)."""
    current: dict[tuple[str, int], list[FindingPlace]] = field(default_factory=lambda: defaultdict(list))
    future: dict[tuple[str, int], list[FindingPlace]] = field(default_factory=lambda: defaultdict(list))


@dataclass(frozen=True, slots=True)
class _LoadedReplica:
    """One directory that a broker loads."""

    seen: DirectorySeen
    place: FindingPlace
    want: ReplicaWant

    @property
    def is_missing_id(self) -> bool:
        return self.seen.metadata.state is MetadataState.MISSING


def replica_findings(broker: SeenBroker, asked: BrokerAsked, wants: BrokerWants) -> Iterator[Finding]:
    """Yield all findings about directories, log dir by log dir, and then about duplicates."""
    loading = _LoadedReplicas(asked)
    replicas: list[_LoadedReplica] = []
    for log_dir in broker.loaded:
        rows = {row["name"]: row for row in log_dir.rows}
        for seen in log_dir.directories:
            place = _place(log_dir, seen, rows.get(seen.shown))
            named = _by_name(log_dir, seen, place, asked)
            if named is not None:
                yield named
            elif seen.kind not in (DirectoryKind.INTERNAL, DirectoryKind.FOREIGN):
                replicas.append(_LoadedReplica(seen, place, wants.about(log_dir.path, seen.shown)))
    loading.search_fails = _search_fails(replicas, asked)
    for replica in replicas:
        yield from _loaded(replica, loading)
    yield from _duplicates(loading)
    wanted = [each.wanted for each in wants.nowhere if each.wanted is not None]
    nowhere = {(each["topic"], each["partition"]): each for each in wanted}
    all_read = not any("." in each.closed for each in broker.distinct.values())
    yield from _futures(replicas, loading, nowhere, all_read=all_read)
    yield from _search_note(replicas, loading)
    yield from _nowhere(nowhere.values(), all_read=all_read)


def _place(log_dir: SeenLogDir, seen: DirectorySeen, row: Row | None) -> FindingPlace:
    name = parse(seen.name)
    found = seen.metadata.topic_id
    in_row = None if row is None else row["topic_id"]
    topic = name.topic if name.topic is None else utf8(name.topic)
    return FindingPlace(log_dir.path, seen.shown, topic, name.partition, in_row if found is None else str(found))


def _by_name(log_dir: SeenLogDir, seen: DirectorySeen, place: FindingPlace, asked: BrokerAsked) -> Finding | None:
    """Judge a directory by its name (FACTS §1.3, §1.6); the target of a link is unknown."""
    answer = asked.by_name(seen.name)
    stops = answer.action is StartAction.STARTUP_ABORTS
    if seen.is_link:
        then = answer.sentence if stops else "and it is loaded like any other"
        sentence = f"a symbolic link, which a broker follows and this does not; if it leads to a directory, {then}"
        return Finding(StartEffect.UNKNOWN, "link", sentence, place)
    if not stops:
        return None
    rule, sentence = "foreign_name", answer.sentence
    if seen.name == STAGING_DIR:
        rule = "staging_inside"
    elif seen.kind is not DirectoryKind.FOREIGN:
        rule = "unknown_to_release"
    elif log_dir.scheme not in (None, Scheme.FLAT.value):
        sentence = f"{sentence}; the log dir is laid out {log_dir.scheme}: convert it to flat first"
    return Finding(StartEffect.STARTUP_ABORTS, rule, sentence, place)


def _search_fails(replicas: list[_LoadedReplica], asked: BrokerAsked) -> bool:
    """Whether a replica without topic ID keeps the broker from handling any stray (FACTS §6.1, §6.2)."""
    if asked.is_kraft and not _STRAYS_DELETED_SINCE <= asked.release < _STRAYS_DELETED_UNTIL:
        return False
    if not asked.is_kraft and not (asked.migrating and asked.release >= FULL_REQUEST_ASKS_TOPIC_ID_SINCE):
        return False
    current = (DirectoryKind.LIVE, DirectoryKind.FUTURE)
    return any(replica.is_missing_id for replica in replicas if replica.seen.kind in current)


def _loaded(replica: _LoadedReplica, loading: _LoadedReplicas) -> Iterator[Finding]:
    """Take one directory through a broker's steps; a loaded current or future replica is remembered."""
    seen, asked, want = replica.seen, loading.asked, replica.want
    state, effect = seen.metadata.state, seen.metadata.effect
    if seen.obstacle is not None:
        sentence = f"{seen.obstacle}, which takes the log dir offline"
        yield Finding(StartEffect.LOG_DIR_OFFLINE, "unreadable_directory", sentence, replica.place)
        return
    answer = start_with_metadata(
        seen.kind,
        state.value,
        asked.release,
        asked.mode,
        # Only a file that does not parse, or that only we parse, needs the effect; other states say more than the
        # effect.
        effect=effect if state in (MetadataState.OK, MetadataState.MALFORMED) else BrokerEffect.NONE,
        version=seen.metadata.version,
    )
    match answer.action:
        case StartAction.STARTUP_ABORTS | StartAction.LOG_DIR_OFFLINE:
            rule = "no_topic_id" if replica.is_missing_id else "partition_metadata"
            detail = "" if seen.metadata.problem is None else f" ({seen.metadata.problem})"
            yield _finding(replica, rule, answer, detail)
        case StartAction.MOVED_TO_STRAY:
            yield _finding(replica, "no_topic_id", answer)
        case StartAction.DELETED_AFTER_DELAY:
            yield _finding(replica, "marked_delete", answer, _still_wanted(want))
        case StartAction.KEPT_AS_STRAY:
            yield _finding(replica, "stray", answer, _still_wanted(want))
        case _:
            yield from _compared_with_metadata(replica, loading)


def _compared_with_metadata(replica: _LoadedReplica, loading: _LoadedReplicas) -> Iterator[Finding]:
    """Test a replica whose name and file are in order for being a stray (FACTS §6.1-6.3)."""
    seen, asked, want, place = replica.seen, loading.asked, replica.want, replica.place
    refused = not asked.is_kraft and want.is_stale and want.by_name
    goes = None
    if place.topic_id is not None and _is_stray(want, asked):
        answer = asked.when_unwanted(seen.kind)
        why = _why_unwanted(want, place)
        spared = f"{why}; only because a replica without topic ID makes the search for strays fail, it stays"
        if answer.action not in EFFECT_OF:
            spared = f"{why}: {answer.sentence}"
        elif not loading.search_fails:
            goes = _finding(replica, "unwanted", answer, before=f"{why}: ")
            yield goes
        if goes is None and not refused:
            yield Finding(StartEffect.NOTE, "unwanted", spared, place, replicas=1)
    if refused and goes is None:
        sentence = (
            f"the disk holds topic ID {place.topic_id}, the metadata want {want.topic_id or 'another'}: "
            f"{_refusal(asked)}"
        )
        compares = asked.release >= _COMPARES_FROM_THE_FIRST_REQUEST_ON_SINCE
        effect = StartEffect.NOT_SERVED if compares else StartEffect.OLD_RECORDS
        yield Finding(effect, "inconsistent_topic_id", sentence, place, replicas=1)
    if goes is None or not _renames_strays_first(asked):
        _remember(replica, loading)


def _refusal(asked: BrokerAsked) -> str:
    """Return what a broker in ZooKeeper mode does with a replica of another topic ID (FACTS §4.2 b).

    A broker of 2.8 compares only partitions that it has open, so a follower's first request passes after a start.
    """
    if asked.release < _COMPARES_FROM_THE_FIRST_REQUEST_ON_SINCE:
        return (
            "a broker before 3.0 takes the old records for those of the new topic while another broker leads, and "
            "counts as in sync; it answers INCONSISTENT_TOPIC_ID (103) once it is to lead, and then nobody serves it"
        )
    return "the broker answers INCONSISTENT_TOPIC_ID (103) and does not use the replica"


def _is_stray(want: ReplicaWant, asked: BrokerAsked) -> bool:
    """Whether a broker sees a stray: by topic ID, by name as well, or by name alone (FACTS §6.1-6.3)."""
    if not (want.is_judged and want.is_complete):
        return False
    if not asked.migrating:
        return want.is_unwanted
    if STRAY_SINCE <= asked.release < FULL_REQUEST_ASKS_TOPIC_ID_SINCE:
        return not want.by_name
    return not (want.by_topic_id and want.is_same_topic)


def _why_unwanted(want: ReplicaWant, place: FindingPlace) -> str:
    if want.is_stale:
        return f"topic {place.topic} was re-created under another ID than {place.topic_id}"
    if want.is_same_topic:
        return f"topic {place.topic} exists under this ID, and this broker is not among the replicas"
    return f"the metadata does not want topic ID {place.topic_id} here"


def _still_wanted(want: ReplicaWant) -> str:
    return "; the metadata want it here" if want.by_topic_id else ""


def _finding(replica: _LoadedReplica, rule: str, answer: StartAnswer, after: str = "", before: str = "") -> Finding:
    wanted = replica.want.by_topic_id or (replica.is_missing_id and replica.want.by_name)
    only = replica.want.only_in_sync and wanted
    harm = "; it is the metadata's only in-sync replica" if only else ""
    effect = EFFECT_OF.get(answer.action, StartEffect.NOTE)
    sentence = f"{before}{answer.sentence}{after}{harm}"
    return Finding(effect, rule, sentence, replica.place, replicas=1, only_in_sync=only)


def _remember(replica: _LoadedReplica, loading: _LoadedReplicas) -> None:
    place = replica.place
    if place.topic is not None and place.partition is not None:
        table = loading.future if replica.seen.kind is DirectoryKind.FUTURE else loading.current
        table[place.topic, place.partition].append(place)


def _duplicates(loading: _LoadedReplicas) -> Iterator[Finding]:
    """Find two current or two future replicas of one partition, whatever their topic IDs (FACTS §1.7)."""
    for what, table in (("current", loading.current), ("future", loading.future)):
        for (topic, partition), places in table.items():
            for place in places if len(places) > 1 else ():
                others = ", ".join(f"{other.log_dir}/{other.name}" for other in places if other is not place)
                sentence = f"{topic}-{partition} is there as {what} replica more than once: also {others}"
                if len({other.topic_id for other in places}) > 1 and _renames_strays_first(loading.asked):
                    sentence += "; only if the metadata want one of the topic IDs alone, the other is set aside first"
                yield Finding(StartEffect.STARTUP_ABORTS, "duplicate", sentence, place, replicas=1)


def _renames_strays_first(asked: BrokerAsked) -> bool:
    """Whether strays are renamed before the search for duplicates (FACTS §1.6, §6.1)."""
    return asked.is_kraft and asked.release >= STRAYS_STAY_OUT_SINCE


def _futures(
    replicas: list[_LoadedReplica], loading: _LoadedReplicas, nowhere: dict[tuple[str, int], Row], *, all_read: bool
) -> Iterator[Finding]:
    """Find future replicas, which replace current ones where the controller says so (FACTS §6.3, §6.5).

    One that becomes the current one is taken out of ``nowhere``, the wanted replicas without a current one. Where not
    ``all_read``, the current one may lie in a log dir that only this user may not read.
    """
    asked = loading.asked
    for replica in replicas:
        place = replica.place
        known = place.topic is not None and place.partition is not None
        if not known or place not in loading.future.get((str(place.topic), place.partition or 0), ()):
            continue
        beside = loading.current.get((str(place.topic), place.partition or 0))
        promoted = asked.is_kraft and asked.release >= _FIRST_WITH_FUTURES_RECOVERED and replica.want.assigned_here
        if not promoted:
            current = next((each for each in replicas if beside and each.place == beside[0]), None)
            wanted = nowhere.get((str(place.topic), place.partition or 0))
            is_alone = all_read and wanted is not None and place.topic_id in (None, wanted["topic_id"])
            yield _alone(place, wanted, asked) if wanted is not None and is_alone else _on_its_way(place, current)
        elif not beside:
            nowhere.pop((str(place.topic), place.partition or 0), None)
            sentence = "the controller has assigned the replica to this log dir: it becomes the current one"
            yield Finding(StartEffect.NOTE, "future_promoted", sentence, place, replicas=1)
        elif asked.release < _FUTURE_BESIDE_LIVE_SINCE:
            sentence = (
                f"{asked.release} promotes it, fails on the current replica beside it, and takes the disk offline"
            )
            yield Finding(StartEffect.LOG_DIR_OFFLINE, "future_promoted", sentence, place, replicas=1)
        else:
            sentence = (
                "the controller has assigned the replica to this log dir: it becomes the current one, and "
                f"{beside[0].log_dir}/{beside[0].name} is deleted after 60 s"
            )
            yield Finding(StartEffect.REPLACED, "future_promoted", sentence, place, replicas=1)


def _alone(place: FindingPlace, wanted: Row, asked: BrokerAsked) -> Finding:
    """Report a copy without its original, from which a broker never takes records: it copies the other way round.

    A broker of any release makes the replica anew where the controller wants it, and goes on with the move from that.
    One of 2.8 writes the topic ID of the new one in another thread than the one that swaps the two.
    """
    sentence = (
        "the original of this copy between log dirs is on none of them: the broker makes the replica anew, and goes on "
        "with the move from that one, which first cuts the copy back to what the new one has"
    )
    effect = StartEffect.NOTE
    if is_only_in_sync(wanted):
        sentence += ": nothing, as no other replica is in sync"
        effect = StartEffect.DELETED
    elif is_none_in_sync(wanted):
        sentence += "; whether that is nothing is not known, as the metadata name no replica in sync"
        effect = StartEffect.UNKNOWN
    if not asked.is_kraft and asked.release < _SEEN_TO_WRITE_IDS_TOO_LATE_UNTIL:
        sentence += f"; rarely it swaps the two before it wrote the topic ID, and then {place.log_dir} goes offline"
    return Finding(effect, "future_alone", sentence, place, replicas=1, only_in_sync=is_only_in_sync(wanted))


def _on_its_way(place: FindingPlace, current: _LoadedReplica | None) -> Finding:
    """Report a move between log dirs, which a broker resumes once it leads or follows the current replica."""
    want = UNKNOWN_WANT if current is None else current.want
    never = want.is_judged and want.is_complete and (want.is_stale or not want.by_name)
    if current is not None and not never:
        old = f"{current.place.log_dir}/{current.place.name}"
        sentence = (
            "a copy on its way between two log dirs: the broker goes on with the move by itself, and when it has "
            f"caught up it becomes the current one, and {old} is deleted after 60 s"
        )
        return Finding(StartEffect.REPLACED, "future", sentence, place, replicas=1)
    sentence = "a copy on its way between two log dirs; it stays, and the move goes on when it is asked for"
    return Finding(StartEffect.NOTE, "future", sentence, place, replicas=1)


def _search_note(replicas: list[_LoadedReplica], loading: _LoadedReplicas) -> Iterator[Finding]:
    """Report replicas without topic ID that make the search for strays fail (FACTS §6.1, §6.2)."""
    if not loading.search_fails:
        return
    bare = [replica for replica in replicas if replica.is_missing_id]
    if loading.asked.is_kraft:
        sentence = f"{count(len(bare), 'replica')} without topic ID: the search for strays fails, and none is handled"
        yield Finding(StartEffect.NOTE, "stray_search_fails", sentence, bare[0].place, replicas=len(bare))
    else:
        sentence = f"{count(len(bare), 'replica')} without topic ID: the controller's FULL request fails as a whole"
        yield Finding(StartEffect.NOT_SERVED, "full_request_fails", sentence, bare[0].place, replicas=len(bare))


def _nowhere(nowhere: Iterable[Row], *, all_read: bool) -> Iterator[Finding]:
    """Find replicas that are wanted here and on none of the log dirs: a broker creates them (FACTS §4.2, §4.3).

    Where not ``all_read``, they may lie in a log dir that only this user may not read.
    """
    nowhere = list(nowhere)
    if nowhere and not all_read:
        sentence = f"{count(len(nowhere), 'replica')} wanted here on none of the log dirs that this user may read"
        yield Finding(StartEffect.UNKNOWN, "missing", sentence, replicas=len(nowhere))
        return
    others = unknown = 0
    for wanted in nowhere:
        if is_none_in_sync(wanted):
            unknown += 1
        elif is_only_in_sync(wanted):
            sentence = (
                f"{wanted['topic']}-{wanted['partition']} is wanted here and lies on none of the log dirs; it is the "
                "metadata's only in-sync replica, and would be made anew without its records"
            )
            place = FindingPlace(None, None, wanted["topic"], wanted["partition"], wanted["topic_id"])
            yield Finding(StartEffect.CREATED_EMPTY, "missing", sentence, place, replicas=1, only_in_sync=True)
        else:
            others += 1
    if others:
        sentence = (
            f"{count(others, 'replica')} wanted here on none of the log dirs: made anew, and fetched from elsewhere"
        )
        yield Finding(StartEffect.NOTE, "missing", sentence, replicas=others)
    if unknown:
        sentence = (
            f"{count(unknown, 'replica')} wanted here on none of the log dirs, of which the metadata name no replica in"
            " sync: made anew, and whether another one still has the records is not known"
        )
        yield Finding(StartEffect.UNKNOWN, "missing", sentence, replicas=unknown)
