"""The place of a report in a store: what may be replaced there, and how a report is put there.

The summary comes last: where that is, the report is whole, and is another audit's for ever. What an audit left that was
killed while it put files there is replaced by the next one, once it has been as it is for some time, because an audit
that still runs looks the same.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from logstore import InventoryStoreError
from logstore.rows import join_uri, list_uri, put, remove_uri
from reconciler.audit import spark as spark_engine
from reconciler.audit.findings import FINDINGS_FILE, SUMMARY_FILE, TOPICS_FILE
from reconciler.errors import UsageError
from reconciler.text import age, count

PAGE_FILE = "report.html"

QUIET_MS = 600_000
"""An audit that runs puts the next file of its report sooner after the one before."""


class HeldAtUri(NamedTuple):
    """What lies at the URI of a report."""

    files: tuple[tuple[str, int | None], ...]
    """Files, with the times at which the store got them."""
    exchanges: tuple[str, ...]
    """Exchanges of audits by Spark that run, or were killed."""


def held_at(report: str) -> HeldAtUri:
    """List what lies at the URI of a report.

    Raises:
        InventoryStoreError: the store cannot be reached, or refuses.
    """
    found = list_uri(report) or ()
    exchanges = spark_engine.left_exchanges(each.name for each in found)
    files = ((each.name, each.modified_ms) for each in found if each.name.partition("/")[0] not in exchanges)
    return HeldAtUri(tuple(files), tuple(exchanges))


def check_replaceable(report: str, held: HeldAtUri, now_ms: int) -> str | None:
    """Check that a report may be put to a URI, and say what it replaces there; None: nothing.

    Raises:
        UsageError: files lie there, and are no report that was cut short.
    """
    if not held.files:
        return None
    names = [name for name, _ in held.files]
    if not all(map(_is_part, names)):
        raise UsageError(f"{report} holds files already, {names[0]} for example: name a new folder")
    quiet_ms = min(now_ms if time_ms is None else now_ms - time_ms for _, time_ms in held.files)
    if any(time_ms is None for _, time_ms in held.files) or quiet_ms < QUIET_MS:
        raise UsageError(
            f"{report} holds files already, {names[0]} for example, of a report that is not finished: an audit puts it "
            f"there, or was killed; name a new folder, or ask again {age(QUIET_MS)} after its last file"
        )
    return f"{report} holds {count(len(names), 'file')} of a report that was cut short, which this one replaces"


def _is_part(name: str) -> bool:
    return name.partition("/")[0] in (FINDINGS_FILE, TOPICS_FILE, PAGE_FILE)


def put_report(folder: str, names: Iterable[str], report: str, replaced: HeldAtUri) -> str | None:
    """Put the files of a report to its URI, the summary last; return why that failed, in a sentence.

    ``replaced``: what lay there when the audit began, and may be replaced.
    """
    done: list[str] = []
    try:
        held = held_at(report).files
        if held and held != replaced.files:
            # Another audit ran meanwhile, and whoever reads the folder would count the findings of both.
            return f"the report is nowhere: {report} holds files by now, {held[0][0]} for example: name a new folder"
        for name, _ in held:
            remove_uri(_at(report, name))
        for name in sorted(names, key=SUMMARY_FILE.__eq__):
            done.append(name)
            put(os.path.join(folder, name), _at(report, name))
    except InventoryStoreError as error:
        for name in done:
            with suppress(InventoryStoreError):
                remove_uri(_at(report, name))
        return f"the report is incomplete: {error}"
    return None


def _at(report: str, name: str) -> str:
    return join_uri(report, *name.split("/"))
