"""Rules about files: in the partition dirs that a broker loads, and in its metadata log.

In a partition dir an I/O error takes the log dir offline, and any other error ends the startup. The metadata log is not
loaded with the others, and any error in it ends the startup. Source: FACTS §1.6, §1.9, §2.3, §2.5, §2.8, §7.2.
"""

from __future__ import annotations

from collections.abc import Iterator

from layout.directory_name import DirectoryKind
from layout.errors import BrokerEffect
from layout.ids import TopicId
from layout.partition_metadata import FILE_NAME as PARTITION_METADATA
from layout.quorum_state import FILE_NAME as QUORUM_STATE
from logstore.rows import MetadataState
from logstore.scan import METADATA_LOG, Denied, DirectorySeen
from reconciler.preflight.evidence import SeenBroker, SeenLogDir
from reconciler.preflight.log_dir_rules import GIVEN_BY_ROOT, OF_EFFECT
from reconciler.preflight.question import BrokerAsked
from reconciler.preflight.releases import STORAGE_ERRORS_PASS_SINCE, KafkaRelease, StartAction
from reconciler.preflight.rules import Finding, FindingPlace, StartEffect
from reconciler.text import count, listed

QUORUM_LAYOUT_1_SINCE = KafkaRelease(3, 8)
"""First release with layout 1 of ``quorum-state``; earlier ones know layout 0 alone (FACTS §2.8)."""

_NO_REPLICA = (DirectoryKind.INTERNAL, DirectoryKind.FOREIGN)
_NOT_FOLLOWED = "a symbolic link, which a broker follows and this does not"


def file_findings(broker: SeenBroker, asked: BrokerAsked) -> Iterator[Finding]:
    """Yield all findings about files."""
    for log_dir in broker.loaded:
        for seen in log_dir.directories:
            loaded = seen.kind not in _NO_REPLICA and not seen.is_link and seen.obstacle is None
            if loaded and asked.by_name(seen.name).action is not StartAction.STARTUP_ABORTS:
                yield from partition_files(log_dir, seen, asked)
    own = broker.distinct.get(broker.metadata_log_dir or "")
    if asked.reads_metadata_log and own is not None and own.metadata_log is not None:
        yield from metadata_log(own, own.metadata_log, asked)


def partition_files(log_dir: SeenLogDir, seen: DirectorySeen, asked: BrokerAsked) -> Iterator[Finding]:
    """Find files of a partition dir that a broker fails on or changes (FACTS §1.9, §2.5)."""
    for name, problem in seen.odd_names:
        yield Finding(StartEffect.STARTUP_ABORTS, "odd_file_name", f"{name}: {problem}", _below(log_dir, seen, name))
    for name in seen.unreadable:
        sentence = f"{name}: this process may not read it, and a broker that may not either takes the log dir offline"
        yield Finding(StartEffect.LOG_DIR_OFFLINE, "unreadable_file", sentence, _below(log_dir, seen, name))
    for name in seen.links:
        yield Finding(StartEffect.UNKNOWN, "linked_file", f"{name}: {_NOT_FOLLOWED}", _below(log_dir, seen, name))
    for damage in seen.damage:
        effect = damage.effect
        if effect is BrokerEffect.LOG_DIR_OFFLINE and asked.release < STORAGE_ERRORS_PASS_SINCE:
            effect = BrokerEffect.STARTUP_ABORTS
        sentence = f"{damage.file}: {damage.problem}; {effect}"
        yield Finding(OF_EFFECT[effect], "leader_epochs", sentence, _below(log_dir, seen, damage.file))
    if seen.leftovers:
        numbers = listed([f"{count(number)} {suffix.value}" for suffix, number in sorted(seen.leftovers.items())])
        sentence = f"left over from changes that did not finish, completed or deleted at the start: {numbers}"
        yield Finding(StartEffect.NOTE, "leftovers", sentence, FindingPlace(log_dir.path, seen.shown))


def metadata_log(log_dir: SeenLogDir, seen: DirectorySeen, asked: BrokerAsked) -> Iterator[Finding]:
    """Find problems of KRaft's own log, in which any error ends the startup (FACTS §1.5, §1.9)."""
    if seen.is_link or seen.obstacle is not None:
        effect = StartEffect.UNKNOWN if seen.is_link else StartEffect.STARTUP_ABORTS
        sentence = _NOT_FOLLOWED if seen.is_link else str(seen.obstacle)
        yield Finding(effect, "metadata_log_damaged", sentence, FindingPlace(log_dir.path, METADATA_LOG))
        return
    if seen.denied is not Denied.NOTHING:
        what, effect = "make files in", StartEffect.UNKNOWN
        if seen.denied is Denied.READ:
            what, effect = "read", StartEffect.STARTUP_ABORTS
        denial = f"the owner of the log dir may not {what} it, and a broker that runs as that user must"
        sentence = f"{denial}; {GIVEN_BY_ROOT}"
        yield Finding(effect, "another_owner", sentence, FindingPlace(log_dir.path, METADATA_LOG))
    for denied, name in seen.denied_files.items():
        what, effect = "write", StartEffect.UNKNOWN
        if denied is Denied.READ:
            what, effect = "read", StartEffect.STARTUP_ABORTS
        denial = f"{name}: the owner of the log dir may not {what} it, and a broker that runs as that user must"
        sentence = f"{denial}; {GIVEN_BY_ROOT}"
        yield Finding(effect, "another_owner", sentence, _below(log_dir, seen, name))
    for name in seen.links:
        yield Finding(StartEffect.UNKNOWN, "linked_file", f"{name}: {_NOT_FOLLOWED}", _below(log_dir, seen, name))
    for rule, sentence, file in (*_damage(seen), *_contents(seen, asked)):
        yield Finding(StartEffect.STARTUP_ABORTS, rule, sentence, _below(log_dir, seen, file))


def _damage(seen: DirectorySeen) -> Iterator[tuple[str, str, str]]:
    """Yield rule, sentence and file for each unusable file of the metadata log (FACTS §1.9, §2.5, §2.8, §7.2)."""
    rule = "metadata_log_damaged"
    for name, problem in seen.odd_names:
        yield rule, f"{name}: {problem}", name
    for name in seen.unreadable:
        yield rule, f"{name}: this process may not read it", name
    for damage in seen.damage:
        yield rule, f"{damage.file}: {damage.problem}", damage.file
    found = seen.metadata
    if found.effect is not BrokerEffect.NONE or found.state not in (MetadataState.OK, MetadataState.MISSING):
        yield rule, f"{PARTITION_METADATA}: {found.problem}", PARTITION_METADATA


def _contents(seen: DirectorySeen, asked: BrokerAsked) -> Iterator[tuple[str, str, str]]:
    """Yield rule, sentence and file for each intact file with the wrong contents (FACTS §2.1, §2.8, §7.2)."""
    if seen.quorum_layout == 1 and asked.release < QUORUM_LAYOUT_1_SINCE:
        sentence = (
            f"quorum-state has data_version 1, which {asked.release} does not know: the cluster is at kraft.version 1, "
            f"and {QUORUM_LAYOUT_1_SINCE} is the first release that reads it"
        )
        yield "quorum_state_too_new", sentence, QUORUM_STATE
    found = seen.metadata
    if found.effect is BrokerEffect.NONE and found.topic_id not in (None, TopicId.METADATA):
        sentence = f"it holds topic ID {found.topic_id}, and that of the metadata log is {TopicId.METADATA}"
        yield "metadata_log_topic_id", sentence, PARTITION_METADATA
    first, last = seen.first_offset or 0, seen.last_snapshot
    if first > 0 and (last is None or last < first):
        sentence = f"the log begins at offset {first}, and no complete snapshot reaches so far"
        yield "metadata_log_snapshot", sentence, ""


def _below(log_dir: SeenLogDir, seen: DirectorySeen, file: str) -> FindingPlace:
    return FindingPlace(log_dir.path, f"{seen.shown}/{file}".rstrip("/"))
