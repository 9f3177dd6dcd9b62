"""``logstore where``: tells where one topic lies in a fleet, since when, and who wants it there."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING

from logstore import InventoryError
from logstore.rows import InventorySet, MetadataState, describe_other_places, is_uri
from logstore.scan import scan_all
from reconciler.cli.frame import (
    Exit,
    Format,
    Inputs,
    check_output,
    choose_metadata,
    destination,
    fallback_records,
    of_this_machine,
    open_page,
    read_inputs,
    say,
    sort_paths,
    warn,
    with_progress,
    write_document,
)
from reconciler.text import NOTHING, Column, count, csv_text, listed, moment, size
from reconciler.verdicts import BENIGN, Severity, Verdict, severity, with_doubt
from reconciler.whereabouts import COPY_VERSION, Copy, Found, Subject, copies_of, nearest, related_topics, search

if TYPE_CHECKING:
    import pyarrow as pa

    from reconciler.history import Place


def run(
    *,
    asked: str,
    paths: tuple[str, ...],
    specs: tuple[str, ...],
    history: str | None,
    form: str,
    output: str | None,
    jobs: int | None,
    sizes: bool,
    fallback_folder: str | None,
) -> Exit:
    """Tell where a topic lies, on which disks, since when, and who wants it there."""
    subject = Subject.parse(asked)
    given = sort_paths(paths)
    check_output(Format(form), output, given.log_dirs, given.inventories)
    now_ms = time.time_ns() // 1_000_000
    observations = scan_all(given.log_dirs, sizes=sizes, jobs=jobs, fallback=fallback_records(fallback_folder))
    seen = list(with_progress(observations, len(given.log_dirs), "scanning log dirs"))
    scanned = [each.rows for each in seen]
    # What lies in a store is copied to this machine, as for an audit; the copies go with the inputs.
    kept = read_inputs(given).inventories if any(map(is_uri, given.inventories)) else None
    files = given.inventories if kept is None else tuple(map(kept.readable, kept.paths))
    found = search(subject.values, files, scanned)
    failed = (MetadataState.ABSENT, MetadataState.UNREADABLE)
    unread = [f"{each.log_dir}: {each.problem}" for each in seen if each.state in failed]
    unread += [f"{problem}. Nothing is known of what it holds" for problem in found.unreadable.values()]
    if files and len(found.unreadable) == len(files) and not given.log_dirs:
        raise InventoryError("; ".join(list(found.unreadable.values())[:5]))
    inventories = InventorySet(files, found.log_dirs)
    states = choose_metadata(specs, Inputs(given.log_dirs, given.folders, inventories), now_ms)
    others = related_topics(subject, found, states) if states else ()
    neighbours = search({"topic": others}, files, scanned).rows if others else ()
    copies = copies_of(subject, found, neighbours, states, now_ms)
    history = of_this_machine(history)
    if history is not None:
        from reconciler.history import describe_runs_to_come, first_seen  # which take a tenth of a second to load

        seen_before = first_seen(history, {each.topic for each in copies if each.topic}, now_ms)
        if left_out := describe_runs_to_come(history, now_ms):
            warn(left_out)
        copies = [_since_history(each, seen_before) for each in copies]
    if not copies:
        names = [state.topics.column("topic" if subject.topic_id is None else "topic_id") for state in states]
        _say_not_found(subject, found, files, scanned, [each for n in names for each in n.to_pylist()])
    _write(copies, subject, found, Format(form), output)
    for note in describe_other_places(found.other_places):
        say(f"note: {note}")
    for problem in unread:
        warn(problem)
    asks_to_act = any(each.verdict is not None and Verdict(each.verdict) not in BENIGN for each in copies)
    if unread:
        return Exit.PARTLY_FAILED
    return Exit.FINDINGS if asks_to_act or not copies else Exit.CLEAN


def _since_history(copy: Copy, seen_before: Mapping[Place, int]) -> Copy:
    earlier = seen_before.get((copy.cluster_id, copy.broker, copy.log_dir, copy.name, copy.topic_id))
    known = [each for each in (earlier, copy.since_ms) if each is not None]
    return replace(copy, since_ms=min(known, default=None))


def _say_not_found(
    subject: Subject, found: Found, inventories: Sequence[str], scanned: Sequence[pa.Table], known: Sequence[str]
) -> None:
    near = nearest(subject, inventories, scanned, known)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    warn(f"{subject.text} lies in none of {count(len(found.log_dirs), 'log dir')}{hint}")


def _write(copies: Sequence[Copy], subject: Subject, found: Found, form: Format, output: str | None) -> None:
    match form:
        case Format.TABLE:
            _show(copies, subject, found, output)
        case Format.JSON:
            head = {"schema_version": COPY_VERSION, "asked": subject.text, "log_dirs": len(found.log_dirs)}
            write_document({**head, "copies": [asdict(each) for each in copies]}, output)
        case Format.NDJSON:
            with destination(output) as out:
                for each in copies:
                    out.write(json.dumps({"schema_version": COPY_VERSION, **asdict(each)}).encode() + b"\n")
        case _:
            rows = (asdict(each) | {"wanted_on": _brokers(each.wanted_on)} for each in copies)
            with destination(output) as out:
                out.write(csv_text([field.name for field in fields(Copy)], rows).encode())


def _brokers(nodes: tuple[int, ...] | None) -> str | None:
    return None if nodes is None else " ".join(map(str, nodes))


def _show(copies: Sequence[Copy], subject: Subject, found: Found, output: str | None) -> None:
    judged = any(each.verdict is not None for each in copies)
    columns = (
        *((Column("VERDICT"),) if judged else ()), Column("PARTITION", path=True), Column("BROKER", right=True),
        Column("KIND"), Column("TOPIC ID"), Column("SIZE", right=True), Column("FIRST SEEN"), Column("LAST SEEN"),
        *((Column("WANTED ON"),) if judged else ()), Column("WHERE", path=True),
    )  # fmt: skip
    colours = {Severity.CRITICAL: "red", Severity.ATTENTION: "yellow"}
    styles = {each.value: colours.get(severity(each), "") for each in Verdict}
    with open_page(output) as opened:
        opened.line(_heading(copies, subject, found), "bold")
        if copies:
            opened.table(columns, (_cells(each, judged) for each in copies), styles)
        for each in copies:
            if each.verdict is not None and Verdict(each.verdict) not in BENIGN:
                where = "" if each.log_dir is None else f" in {each.log_dir}"
                said = with_doubt(each.evidence or "", each.doubt)
                opened.line(f"{each.verdict}: {each.topic}-{each.partition} of broker {each.broker}{where}: {said}")


def _heading(copies: Sequence[Copy], subject: Subject, found: Found) -> str:
    places = {(each.cluster_id, each.broker) for each in copies if each.log_dir is not None}
    ids = sorted({each.topic_id for each in copies if each.topic_id is not None})
    on_disk = sum(each.log_dir is not None for each in copies)
    parts = [
        f"{subject.text}: {count(on_disk, 'copy', 'copies')} on {count(len(places), 'broker')}",
        f"{'topic ID' if len(ids) == 1 else 'topic IDs'} {listed(ids)}" if ids else "",
        f"among {count(len(found.log_dirs), 'scanned log dir')}",
    ]
    return ", ".join(part for part in parts if part)


def _cells(copy: Copy, judged: bool) -> tuple[str, ...]:
    wanted = _brokers(copy.wanted_on)
    return (
        *((copy.verdict or NOTHING,) if judged else ()),
        f"{copy.topic}-{copy.partition}",
        NOTHING if copy.broker is None else str(copy.broker),
        copy.kind or NOTHING,
        copy.topic_id or NOTHING,
        size(copy.disk_bytes),
        moment(copy.since_ms),
        moment(copy.scanned_ms),
        *((NOTHING if wanted is None else wanted or "nowhere",) if judged else ()),
        NOTHING if copy.log_dir is None else f"{copy.log_dir}/{copy.name}",
    )
