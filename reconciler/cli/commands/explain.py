"""``logstore explain``: says what one path is, by which rule, what a broker does with it, and what to do next."""

from __future__ import annotations

import errno
import os
import time
from dataclasses import asdict, replace

from reconciler.cli.frame import (
    Exit,
    Format,
    PartlyFailedError,
    choose_metadata,
    fallback_records,
    forbidden_in,
    is_of_settings,
    log_dir_of_path,
    log_dirs_in,
    open_page,
    report_closed,
    sort_inputs,
    write_document,
)
from reconciler.cli.pages import (
    Explanation,
    explain_directory,
    explain_file,
    explain_log_dir,
    judge_name,
    scan_rows,
)
from reconciler.errors import UsageError
from reconciler.next_steps import Call
from reconciler.text import Column
from reconciler.verdicts import BENIGN

SCHEMA_VERSION = 1
"""Version of the JSON; raised whenever a field changes its meaning or goes."""


def run(
    *,
    path: str,
    log_dirs: tuple[str, ...],
    specs: tuple[str, ...],
    form: str,
    output: str | None,
    fallback_folder: str | None,
    **broker: str | None,
) -> Exit:
    """Explain one path: a partition dir of any kind, any other directory or file in a log dir, or a log dir."""
    explained = _explain(path, Call(log_dirs, specs, fallback_folder, **broker), time.time_ns() // 1_000_000)
    if Format(form) is Format.JSON:
        _write_json(explained, output)
    else:
        _show(explained, output)
    asks_to_act = any(each.verdict not in {verdict.value for verdict in BENIGN} for each in explained.verdicts)
    return Exit.FINDINGS if asks_to_act else Exit.CLEAN


def _explain(path: str, call: Call, now_ms: int) -> Explanation:
    try:
        os.lstat(path)
    except PermissionError as error:
        refused = f"{path} cannot be read: {error.strerror}"
        raise PartlyFailedError(f"{refused}: become the broker's own user, or root, and ask again") from error
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    home, fallback = log_dir_of_path(path), fallback_records(call.fallback)
    closed = forbidden_in(path) if home is None else None
    if closed is not None:
        refused = os.strerror(errno.EACCES)
        raise PartlyFailedError(f"{closed} cannot be read: {refused}; nothing is known of what lies there")
    rows = [] if home is None else scan_rows(home.log_dir, fallback)
    row = next((each for each in rows if home is not None and each["name"] == home.name), None)
    given = tuple(dict.fromkeys(map(os.path.abspath, log_dirs_in(call.log_dirs) if call.log_dirs else ())))
    others = tuple(each for each in given if home and os.path.realpath(each) != os.path.realpath(home.log_dir))
    if len(others) == len(given) and is_of_settings("log_dirs"):
        others = ()  # the path is of none of them, so they may be another broker's
    states = [] if home is None else choose_metadata(call.metadata, sort_inputs([home.log_dir, *others]), now_ms)
    if home is not None and home.name == ".":
        explained = explain_log_dir(home, rows)
    elif os.path.isdir(path) and not os.path.islink(path):
        explained = explain_directory(path, home, row, states)
    else:
        explained = explain_file(path, home)
    if home is None:
        return explained
    report_closed([(home.log_dir, home.name)])
    sources = call.metadata or tuple(state.identity.location for state in states)
    call = replace(call, log_dirs=(home.log_dir, *others), metadata=sources)
    return replace(explained, verdicts=judge_name(home, rows, states, call, now_ms))


def _write_json(explained: Explanation, output: str | None) -> None:
    document = {"schema_version": SCHEMA_VERSION, **asdict(explained)}
    document["facts"] = [{"label": label, "text": text} for label, text in explained.facts]
    write_document(document, output)


def _show(explained: Explanation, output: str | None) -> None:
    with open_page(output) as opened:
        opened.line(explained.path, "bold")
        opened.line(f"is {explained.what}")
        opened.line(f"rule: {explained.rule}")
        opened.line()
        opened.table((Column("FOUND"), Column("", prose=True)), explained.facts, {})
        if explained.at_start:
            opened.line()
            grouped: dict[tuple[str, str], list[str]] = {}
            for each in explained.at_start:
                grouped.setdefault((each.action, each.sentence), []).append(each.kafka)
            rows = [(", ".join(kafkas), *answer) for answer, kafkas in grouped.items()]
            opened.table((Column("KAFKA"), Column("AT START"), Column("BECAUSE", prose=True)), rows, {})
        for judged in explained.verdicts:
            opened.line()
            opened.line(f"{judged.verdict}: {judged.evidence}" if judged.evidence else judged.verdict, "bold")
            opened.line(f"{judged.meaning} {judged.why}")
            if judged.next:
                opened.line(f"next: {judged.next}", whole=True)
