"""What the verdicts of a broker's replicas come to: how many of each, where the first is, and what becomes of strays.

Where a replica is named by a pair, that is its topic and partition.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from layout.directory_name import MAX_DIRECTORY_NAME
from logstore.scan import read_metadata_file
from reconciler.desired import DesiredState, is_only_in_sync
from reconciler.next_steps import NAMED_AT_ONCE, FoundVerdict, UncertainReplica
from reconciler.plan import led_elsewhere
from reconciler.verdicts import URGENCY, Judged, Verdict, broker_of, with_doubt

_PARTITION = re.compile(r"-[0-9]+(?![0-9])")
"""Where the name of a replica may end in a longer one."""


def by_verdict(judged: Sequence[Judged]) -> dict[Verdict, list[Judged]]:
    """Group findings by their verdict, the most urgent first."""
    found: dict[Verdict, list[Judged]] = defaultdict(list)
    for each in judged:
        found[each.verdict].append(each)
    return {verdict: found[verdict] for verdict in URGENCY if verdict in found and verdict is not Verdict.OK}


def first_place(several: Sequence[Judged]) -> str:
    """Say in a line where the first finding of a verdict is, and its evidence; a directory weighs more than a file."""
    directories = (each for each in several if each.observed is not None and _is_directory(each.observed))
    judged = next(directories, several[0])
    row: Mapping[str, Any] = judged.observed or judged.wanted or {}
    place = f"{row['topic']}-{row['partition']}"
    if judged.observed is not None:
        place = posixpath.normpath(f"{row['log_dir']}/{row['name']}")
    return f"{place}: {with_doubt(judged.evidence, judged.doubt)}"


def found_verdict(
    several: Sequence[Judged],
    in_sync: frozenset[tuple[str, int | None]],
    live: frozenset[tuple[str, int | None]],
    lost: Mapping[tuple[str, int | None], str],
) -> FoundVerdict:
    """Sum up the findings of one verdict; at least one. ``lost`` is what :func:`lost_replicas` gives."""
    last = [each for each in several if _is_last(each, live, lost)]
    several = [*last, *(each for each in several if each not in last)]
    directories = [each for each in several if each.observed is not None and _is_directory(each.observed)]
    first, *others = (_alone(each) for each in (directories or several)[:NAMED_AT_ONCE])
    strays = [each for each in several if _is_bare_stray(each)]
    whole = [each for each in strays if not _is_cut(each)]
    replaced = sum((each.row.topic, (each.observed or {}).get("partition")) in in_sync for each in whole)
    return replace(
        first,
        number=len(several),
        wanted=sum(comes_back(each, live) or each in last for each in several),
        directories=len(directories),
        replaced=replaced,
        sole=sum(map(_is_sole, several)),
        left=len(strays) - replaced + sum(_is_left(each, live) for each in several),
        last=len(last),
        others=tuple(others),
    )


def lost_replicas(judged: Iterable[Judged]) -> dict[tuple[str, int | None], str]:
    """Topic and partition of each missing replica that no other copy is in sync of, and the topic ID; empty: none."""
    missing = (each for each in judged if each.verdict is Verdict.MISSING and _is_sole(each))
    wanted = [each.wanted for each in missing if each.wanted is not None]
    return {(each["topic"], each["partition"]): each["topic_id"] or "" for each in wanted}


def _is_last(
    judged: Judged, live: frozenset[tuple[str, int | None]], lost: Mapping[tuple[str, int | None], str]
) -> bool:
    """Whether a start deletes the only copy in sync of a replica that is wanted here, or cuts it back to nothing.

    A move of release 2.8 has no topic ID before it is done; the broker goes by its name.
    """
    if judged.verdict in (Verdict.FUTURE, Verdict.FUTURE_ABANDONED) and judged.observed is not None:
        topic_id = lost.get((judged.row.topic, judged.observed["partition"]))
        return topic_id is not None and judged.row.disk_topic_id in ("", topic_id)
    return judged.verdict is Verdict.MARKED_DELETE and comes_back(judged, live) and _is_sole(judged)


def _is_sole(judged: Judged) -> bool:
    """Whether the metadata has no other copy in sync."""
    wanted = judged.wanted
    return wanted is not None and is_only_in_sync(wanted)


def _alone(judged: Judged) -> FoundVerdict:
    row = judged.observed or {}
    stranger = judged.row.id_topic if judged.row.id_topic != judged.row.topic else ""
    return FoundVerdict(
        1, row.get("log_dir"), row.get("name"), row.get("topic"), row.get("partition"), stranger or None
    )


def _is_directory(row: Mapping[str, Any]) -> bool:
    return os.path.isdir(os.path.join(row["log_dir"], row["name"]))


def with_former_names(foreign: FoundVerdict, judged: Sequence[Judged]) -> FoundVerdict:
    """Say of directories of foreign names which missing replica each was, by its topic ID and how its name begins.

    A replica that was renamed by hand, to ``orders-0.bak``, is perhaps the only copy of its data. Of several that were
    the same one, only the first is said to be it.
    """
    missing = {
        f"{each.wanted['topic']}-{each.wanted['partition']}": each.wanted
        for each in judged
        if each.verdict is Verdict.MISSING and each.wanted is not None
    }

    def known(found: FoundVerdict) -> FoundVerdict:
        name = found.name or ""
        ends = (each.end() for each in _PARTITION.finditer(name))
        was = next((name[:end] for end in ends if name[:end] in missing), None)
        topic_id = None if was is None else read_metadata_file(os.path.join(found.log_dir or "", name)).topic_id
        if was is None or topic_id is None or str(topic_id) != missing[was]["topic_id"]:
            return found
        wanted = missing.pop(was)
        return replace(found, belongs_to=wanted["topic"], partition=wanted["partition"])

    first, *others = (known(each) for each in (foreign, *foreign.others))
    return replace(first, others=tuple(others))


def live_replicas(judged: Sequence[Judged]) -> frozenset[tuple[str, int | None]]:
    """Topic and partition of each live replica."""
    seen = (each for each in judged if each.row.kind == "live")
    return frozenset((each.row.topic, each.observed["partition"]) for each in seen if each.observed is not None)


def comes_back(judged: Judged, live: frozenset[tuple[str, int | None]]) -> bool:
    """Whether the metadata wants a replica here, and none lives in its place."""
    wanted = judged.wanted
    return judged.row.wanted and (wanted is None or (wanted["topic"], wanted["partition"]) not in live)


def in_sync_replicas(states: Mapping[str, DesiredState], judged: Sequence[Judged]) -> frozenset[tuple[str, int | None]]:
    """Topic and partition of each live replica that is as it should be, and in sync or led by another live broker."""
    strays = [each.observed for each in judged if _is_bare_stray(each) and each.observed is not None]
    bare = {
        (str(row["topic"]), int(row["partition"])) for row in strays if None not in (row["topic"], row["partition"])
    }
    fine = {
        (each.row.topic, each.observed["partition"]): each
        for each in judged
        if bare and each.verdict is Verdict.OK and each.wanted is not None and each.observed is not None
    }
    behind = {key: broker_of(each.observed or {}) for key, each in fine.items() if not (each.wanted or {})["in_sync"]}
    led = led_elsewhere(states, [(behind[key], *key) for key in bare & behind.keys()])
    return frozenset(key for key in fine if key not in behind or (behind[key], *key) in led)


def unclaimed_strays(judged: Sequence[Judged]) -> Iterator[UncertainReplica]:
    """Find strays that no plan ever takes."""
    wanted = {(each.wanted["topic"], each.wanted["partition"]) for each in judged if each.wanted}
    live = live_replicas(judged)
    for each in judged:
        row = each.observed or {}
        if _is_bare_stray(each) and not _is_cut(each) and (row["topic"], row["partition"]) not in wanted:
            reason = "it has no topic ID, and the metadata wants no replica of its name here"
        elif _is_cut(each) and (_is_bare_stray(each) or _is_left(each, live)):
            reason = "its name was cut, so nothing says surely what it was"
        elif _is_left(each, live):
            reason = "a live replica of its topic ID is in its place"
        else:
            continue
        yield UncertainReplica(row["log_dir"], row["name"], row["topic"], reason, is_live=False, is_unclaimed=True)


def _is_bare_stray(judged: Judged) -> bool:
    return judged.verdict is Verdict.STRAY and not judged.row.disk_topic_id


def _is_cut(judged: Judged) -> bool:
    """Whether its name has the greatest length, so that it may be cut, and the topic be another one."""
    return judged.observed is not None and len(judged.observed["name"]) >= MAX_DIRECTORY_NAME


def _is_left(judged: Judged, live: frozenset[tuple[str, int | None]]) -> bool:
    """Whether a stray with a topic ID gets no action all the same, which no plan gives it later either."""
    if judged.verdict is not Verdict.STRAY or _is_bare_stray(judged):
        return False
    return not comes_back(judged, live) if judged.row.wanted else _is_cut(judged)


def without_directory_id(judged: Sequence[Judged]) -> tuple[str, ...]:
    """List the log dirs without a directory.id that are as they should be otherwise."""
    rows = (each.observed for each in judged if each.row.kind == "log_dir" and each.verdict is Verdict.OK)
    return tuple(row["log_dir"] for row in rows if row is not None and row["directory_id"] is None)
