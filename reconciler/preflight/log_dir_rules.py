"""Rules about log dirs: paths, locks, ``meta.properties``, checkpoints, and where the metadata log lies.

Each function is one rule, or a few rules about the same thing. It takes the evidence and the broker in question, and
yields findings. Source: FACTS §1.5, §1.6, §2.2, §2.6, §2.7; 10.6 rows 144-164.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from layout.checkpoint import AFTER_A_BAD_NUMBER, HIGH_WATERMARK_CHECKPOINT, NUMBERS_PASS_SINCE
from layout.directory_name import DirectoryKind
from layout.errors import BrokerEffect
from layout.log_dir_set import FailedLogDir, LogDirSet, startup_problems
from layout.meta_properties import MetaProperties
from layout.scheme import Scheme
from logstore.rows import Kind, MetadataState
from logstore.scan import METADATA_LOG, Denied
from reconciler.preflight.evidence import FULL_BELOW, SeenBroker, SeenLogDir
from reconciler.preflight.question import DIRECTORY_IDS_SINCE, BrokerAsked
from reconciler.preflight.releases import KafkaRelease
from reconciler.preflight.rules import Finding, FindingPlace, StartEffect
from reconciler.text import count, listed

OF_EFFECT = {
    BrokerEffect.NONE: StartEffect.NOTE,
    BrokerEffect.LOG_DIR_OFFLINE: StartEffect.LOG_DIR_OFFLINE,
    BrokerEffect.STARTUP_ABORTS: StartEffect.STARTUP_ABORTS,
}
GIVEN_BY_ROOT = "root can give it to that user, and opens what is that user's already with chmod -R u+rwX"
"""What cures a file or directory that the owner of its log dir may not use, whoever looks."""
_STARTS_WITHOUT_ROOM = KafkaRelease(3, 0)
"""From here on no release was seen not to start on a full disk."""
_CURRENT = frozenset({Kind.LIVE.value, Kind.FUTURE.value})


def log_dir_findings(broker: SeenBroker, asked: BrokerAsked) -> Iterator[Finding]:
    """Yield all findings about log dirs, each on its own and all together."""
    yield from same_directory(broker)
    yield from identities(broker, asked)
    if asked.reads_metadata_log:
        yield from metadata_log_place(broker, asked)
    for each in broker.distinct.values():
        yield from usable(each, asked)
        yield from lock(each)
        yield from read_only(each)
        yield from room(each, asked)
        if each.is_loaded:
            yield from checkpoints(each, asked)
            yield from owners(each)
            yield from scheme(each)
            yield from stop_and_segments(each)


def same_directory(broker: SeenBroker) -> Iterator[Finding]:
    """Find configured paths that are one directory, which ends the startup (FACTS §1.5)."""
    first: dict[str, SeenLogDir] = {}
    for each in broker.log_dirs:
        other = first.setdefault(each.canonical, each)
        if other is not each:
            yield Finding(
                StartEffect.STARTUP_ABORTS,
                "same_directory",
                f"it is the same directory as {other.path}, which is configured too",
                FindingPlace(each.path, "."),
            )


def usable(seen: SeenLogDir, asked: BrokerAsked) -> Iterator[Finding]:
    """Find paths that are no readable directory and so go offline, and absent ones, which are created (FACTS §1.5).

    In KRaft mode an absent log dir also counts as not formatted, which ends the startup: see :func:`identities`.
    """
    place = FindingPlace(seen.path, ".")
    if seen.obstacle is not None:
        yield Finding(StartEffect.LOG_DIR_OFFLINE, "unusable_log_dir", f"the path {seen.obstacle}", place)
    elif isinstance(seen.identity, FailedLogDir):
        yield _damaged_identity(seen, seen.identity, asked)
    elif not asked.is_kraft and seen.identity is None and not any(row["kind"] in _CURRENT for row in seen.rows):
        what = (
            "the directory has neither meta.properties nor replicas" if seen.is_there else "there is no such directory"
        )
        sentence = f"{what}, so it is taken for a new disk: make sure that the file system is mounted"
        yield Finding(StartEffect.CREATED_EMPTY, "absent_log_dir", sentence, place)


def _damaged_identity(seen: SeenLogDir, found: FailedLogDir, asked: BrokerAsked) -> Finding:
    """Report a ``meta.properties`` that is unreadable or malformed.

    Either takes the disk offline since 3.7; before, only an unreadable file does, and a malformed one ends the startup.
    """
    place = FindingPlace(seen.path, "meta.properties")
    cannot_be_read = any(row["metadata_state"] == MetadataState.UNREADABLE for row in seen.rows[:1])
    if asked.release >= DIRECTORY_IDS_SINCE or cannot_be_read:
        return Finding(StartEffect.LOG_DIR_OFFLINE, "damaged_identity", found.problem, place)
    sentence = f"{found.problem}; {asked.release} reads it all the same, and refuses to start on what it holds"
    return Finding(StartEffect.STARTUP_ABORTS, "damaged_identity", sentence, place)


def lock(seen: SeenLogDir) -> Iterator[Finding]:
    """Find log dirs that another process has locked, which ends the startup (FACTS §1.5, §2.7)."""
    if seen.lock_held_by is not None:
        yield Finding(
            StartEffect.STARTUP_ABORTS,
            "lock_held",
            f"the log dir is in use by {seen.lock_held_by}, and a second broker does not start on it",
            FindingPlace(seen.path, ".lock"),
        )


def read_only(seen: SeenLogDir) -> Iterator[Finding]:
    """Find disks on which nothing can be written, so that ``.lock`` cannot be opened (FACTS §1.5)."""
    if seen.read_only and seen.obstacle is None and seen.lock_held_by is None:
        sentence = (
            "its file system is mounted read-only here, which is what the kernel does after an error of the disk: a "
            "broker cannot open .lock, and takes the log dir offline"
        )
        yield Finding(StartEffect.LOG_DIR_OFFLINE, "read_only_disk", sentence, FindingPlace(seen.path, "."))


def room(seen: SeenLogDir, asked: BrokerAsked) -> Iterator[Finding]:
    """Find full disks: what a broker needs to write at its start depends on the release and on what it finds.

    Seen with the log dir as the root of its disk: 2.8.2 did not start; 3.9.2 came up in both modes; 3.9.2 and 4.3.1
    took the log dir offline where a stale replica had to make way.
    """
    if seen.free_bytes is None or seen.free_bytes >= FULL_BELOW:
        return
    what = "its disk is full"  # of bytes, or of names
    place = FindingPlace(seen.path, ".")
    if asked.release < _STARTS_WITHOUT_ROOM and not seen.free_bytes:
        yield Finding(StartEffect.STARTUP_ABORTS, "full_disk", f"{what}, on which 2.8.2 was seen not to start", place)
        return
    such = ", as 3.9.2 and 4.3.1 did where a stale replica had to be set aside" if asked.is_kraft else ""
    sentence = (
        f"{what}: whether the broker starts is not known from here, though 3.9.2 was seen to; it takes the log dir "
        f"offline at the first write that finds no room{such}"
    )
    yield Finding(StartEffect.UNKNOWN, "full_disk", sentence, place)


def identities(broker: SeenBroker, asked: BrokerAsked) -> Iterator[Finding]:
    """Find contradictions between all ``meta.properties``, by ``layout.log_dir_set`` (FACTS §1.5, §2.2)."""
    found = {path: each.identity for path, each in broker.distinct.items()}
    for path, each in broker.distinct.items():
        if each.obstacle is not None:
            found[path] = FailedLogDir(each.obstacle)
        identity = each.identity
        if asked.release < DIRECTORY_IDS_SINCE and identity is not None and not isinstance(identity, FailedLogDir):
            found[path] = dataclasses.replace(identity, directory_id=None)
    log_dirs = LogDirSet(found, broker.metadata_log_dir if asked.is_kraft else None)
    problems = startup_problems(log_dirs, asked.requirement)
    if not problems and not asked.is_kraft and asked.release < DIRECTORY_IDS_SINCE:
        yield from _not_the_same(broker)
    for problem in problems:
        about = problem.removeprefix("metadata log dir ")
        of = next((path for path in found if about.startswith((f"{path}:", f"{path}/"))), None)
        if of in log_dirs.empty:
            what = "" if broker.distinct[of].is_there else ", and there is no such directory: is its disk mounted?"
            yield Finding(
                StartEffect.STARTUP_ABORTS,
                "not_formatted",
                f"{problem}{what}",
                FindingPlace(broker.distinct[of].path, "."),
            )
        elif of is None and log_dirs.empty and not log_dirs.normal:
            # The next step is to look at the disk, as there is no file to look into.
            empty = next((each.path for path, each in broker.distinct.items() if path in log_dirs.empty), None)
            yield Finding(StartEffect.STARTUP_ABORTS, "not_formatted", problem, FindingPlace(empty, "."))
        else:
            place = FindingPlace() if of is None else FindingPlace(broker.distinct[of].path, "meta.properties")
            yield Finding(StartEffect.STARTUP_ABORTS, "identity", problem, place)


def _not_the_same(broker: SeenBroker) -> Iterator[Finding]:
    """Find different files; in ZooKeeper mode, releases before 3.7 require equal contents (seen on 2.8.2)."""
    found = {path: each for path, each in broker.distinct.items() if isinstance(each.identity, MetaProperties)}
    first = next(iter(found.values()), None)
    for each in found.values():
        if first is not None and each.identity != first.identity:
            sentence = f"it is not the same as {first.path}/meta.properties, and releases before 3.7 ask for that"
            yield Finding(StartEffect.STARTUP_ABORTS, "identity", sentence, FindingPlace(each.path, "meta.properties"))


def metadata_log_place(broker: SeenBroker, asked: BrokerAsked) -> Iterator[Finding]:
    """Find a metadata log outside the metadata log dir, or its absence in it (FACTS §1.5, §7.1)."""
    holders = [path for path, each in broker.distinct.items() if each.metadata_log is not None]
    for path in holders:
        each = broker.distinct[path]
        readable = each.identity is not None and not each.failed
        if asked.is_kraft and path != broker.metadata_log_dir and readable:
            sentence = (
                f"{METADATA_LOG} lies here, and the metadata log dir is {broker.metadata_log_dir}: the first of "
                "log.dirs, unless metadata.log.dir says otherwise"
            )
            yield Finding(
                StartEffect.STARTUP_ABORTS, "metadata_log_elsewhere", sentence, FindingPlace(each.path, METADATA_LOG)
            )
    own = broker.distinct.get(broker.metadata_log_dir or "")
    if own is not None and own.metadata_log is None and own.is_there and not own.failed:
        sentence = (
            f"there is no {METADATA_LOG}: the broker fetches the metadata anew, and a sole controller would begin with "
            "an empty cluster"
        )
        yield Finding(StartEffect.NOTE, "no_metadata_log", sentence, FindingPlace(own.path, METADATA_LOG))


def checkpoints(seen: SeenLogDir, asked: BrokerAsked) -> Iterator[Finding]:
    """Find damaged checkpoints, which take the log dir offline; a bad number does less harm (FACTS §1.6, §2.3)."""
    replicas = sum(row["kind"] in _CURRENT for row in seen.rows)
    for damage in seen.checkpoints:
        effect, then, number = OF_EFFECT[damage.effect], "", 0
        if damage.effect is BrokerEffect.NONE:
            effect, then = _of_bad_number(damage.file, asked)
            number = replicas if effect is StartEffect.NOT_SERVED else 0
        sentence = f"{damage.file}: {damage.problem}{then}"
        yield Finding(effect, "damaged_checkpoint", sentence, FindingPlace(seen.path, damage.file), replicas=number)


def _of_bad_number(file: str, asked: BrokerAsked) -> tuple[StartEffect, str]:
    """Return the effect of a number that does not parse, and its text (FACTS §2.3; seen on 2.8.2, 3.9.2 and 4.3.1)."""
    if asked.release < KafkaRelease(*NUMBERS_PASS_SINCE):
        return StartEffect.LOG_DIR_OFFLINE, f"; {asked.release} takes such a line for an I/O error"
    effect = StartEffect.NOT_SERVED if file == HIGH_WATERMARK_CHECKPOINT else StartEffect.NOTE
    return effect, f"; {AFTER_A_BAD_NUMBER[file]}"


def scheme(seen: SeenLogDir) -> Iterator[Finding]:
    """Find log dirs of ours in which a broker sees only the replicas at the top (DESIGN §5, FACTS §1.6)."""
    if seen.scheme in (None, Scheme.FLAT.value):
        return
    below = sum(row["kind"] in _CURRENT and "/" in row["name"] for row in seen.rows)
    sentence = f"the log dir is laid out {seen.scheme}, which no broker can read"
    if below:
        sentence += f"; it would not see {count(below, 'replica')} in it"
    effect = StartEffect.NOT_SERVED if below else StartEffect.NOTE
    yield Finding(effect, "scheme_not_flat", sentence, FindingPlace(seen.path, "."), replicas=below)


def owners(seen: SeenLogDir) -> Iterator[Finding]:
    """Find what the owner of the log dir, as whom its broker runs, may not read or change (FACTS §1.9)."""
    directories = [each for each in seen.directories if each.name != METADATA_LOG]
    read, change = (
        "takes the log dir offline",
        "takes the log dir offline at the first file that it cannot open to write",
    )
    for denied, what, then in (
        (Denied.READ, "read", read),
        (Denied.CHANGE, "make files in", f"{change}, or make, there"),
    ):
        names = [each.shown for each in directories if each.denied is denied]
        if names:
            yield _of_another_owner(
                seen, denied, f"{what} {_directories(names)} of it", then, names=names, replicas=len(names)
            )
    for denied, what, then in ((Denied.READ, "read", read), (Denied.CHANGE, "write", change)):
        files = [f"{each.shown}/{each.denied_files[denied]}" for each in directories if denied in each.denied_files]
        names = [seen.denied_files[denied], *files] if denied in seen.denied_files else files
        if names:
            where = f"{_directories(files)} of it" if files == names else "it"
            where = f"it and in {_directories(files)} of it" if files and files != names else where
            yield _of_another_owner(seen, denied, f"{what} files in {where}", then, names=names, replicas=len(files))


def _directories(names: Sequence[str]) -> str:
    return count(len(names), "directory", "directories")


def _of_another_owner(
    seen: SeenLogDir, denied: Denied, what: str, then: str, *, names: Sequence[str], replicas: int
) -> Finding:
    effect = StartEffect.LOG_DIR_OFFLINE if denied is Denied.READ else StartEffect.UNKNOWN
    denial = f"the owner of the log dir may not {what}, and a broker that runs as that user {then}: {listed(names)}"
    sentence = f"{denial}; {GIVEN_BY_ROOT}"
    return Finding(effect, "another_owner", sentence, FindingPlace(seen.path, "."), replicas=replicas)


def stop_and_segments(seen: SeenLogDir) -> Iterator[Finding]:
    """Find notes that end nothing: no clean stop, which costs time, and replicas without a segment."""
    current = [each for each in seen.directories if each.kind is DirectoryKind.LIVE and not each.is_link]
    # While a broker runs the marker is never there, and nothing tells yet how it will stop.
    if current and not seen.stopped_cleanly and seen.lock_held_by is None:
        sentence = (
            f"the last stop was not a clean one, so the start takes longer: {count(len(current), 'replica')} may have "
            "to be recovered from the recovery point on"
        )
        yield Finding(StartEffect.NOTE, "unclean_stop", sentence, FindingPlace(seen.path, "."))
    bare = [each.shown for each in current if each.segments == 0 and each.obstacle is None]
    if bare:
        sentence = f"{count(len(bare), 'replica')} without a segment, loaded as empty: {listed(bare)}"
        yield Finding(StartEffect.NOTE, "no_segment", sentence, FindingPlace(seen.path, "."), replicas=len(bare))


def consequences(broker: SeenBroker, asked: BrokerAsked, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Find what offline log dirs mean for the broker as a whole (FACTS §1.5)."""
    offline = {each.place.log_dir for each in findings if each.effect is StartEffect.LOG_DIR_OFFLINE}
    own = broker.distinct.get(broker.metadata_log_dir or "")
    for_replicas = {each.path for each in broker.distinct.values() if each.for_replicas}
    if not for_replicas - offline:
        sentence = "no log dir would be left online, and a broker without one halts"
        yield Finding(StartEffect.STARTUP_ABORTS, "no_log_dir_online", sentence)
    elif asked.reads_metadata_log and own is not None and own.path in offline and not (asked.is_kraft and own.failed):
        sentence = "the metadata log dir would go offline, and the broker halts with it"
        yield Finding(StartEffect.STARTUP_ABORTS, "metadata_log_dir_offline", sentence, FindingPlace(own.path, "."))
    elif asked.migrating and offline:
        sentence = (
            f"a broker that migrates halts when any log dir goes offline, here {listed(sorted(map(str, offline)))}"
        )
        yield Finding(StartEffect.STARTUP_ABORTS, "migration_needs_all_log_dirs", sentence)
