"""The journal of one run, in the root of each log dir that it changed: who did what, when, and on which evidence.

``.logstore_run.<13 digits: ms since 1970>.<16 digits of the plan>.ndjson``, a plain file of a few lines, which a broker
ignores. The first line is the run, every further line an action with its outcome. The file is written before the first
change, with every action under way, and again at the end; so a journal without an end belongs to a run that was cut
short. Journals are never removed. Source: DESIGN §6; FACTS §1.1.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from layout import json_text
from layout.errors import DamagedFileError
from layout.scheme import RUN_JOURNAL_PREFIX, RUN_JOURNAL_SUFFIX

SCHEMA_VERSION: Final = 1
FORMAT: Final = "journal of a run"
_DIGITS = 16


@dataclass(frozen=True, slots=True)
class RunJournal:
    """The actions of one run in one log dir.

    Attributes:
        plan: fingerprint of the plan that was carried out.
        host: name of the machine.
        user: name of the user.
        started_ms: in ms since 1970.
        finished_ms: in ms since 1970; None: the run was cut short, or is going on.
        metadata: where the plan's desired state came from, as text by field.
        lines: the actions, each with its ``status``.
        log_dirs: all log dirs of the broker, as the run was given them; empty: an earlier release did not say.
    """

    plan: str
    host: str
    user: str
    started_ms: int
    finished_ms: int | None
    metadata: tuple[Mapping[str, str], ...] = field(hash=False)
    lines: tuple[Mapping[str, Any], ...] = field(hash=False)
    log_dirs: tuple[str, ...] = ()


def run_journal_name(started_ms: int, plan: str) -> str:
    """The name of a run's journal; names sort by time."""
    return f"{RUN_JOURNAL_PREFIX}{started_ms:013d}.{plan[:_DIGITS]}{RUN_JOURNAL_SUFFIX}"


def is_run_journal(name: str) -> bool:
    """Whether a plain file in the root of a log dir is a journal, and no temporary file of one."""
    return name.startswith(RUN_JOURNAL_PREFIX) and name.endswith(RUN_JOURNAL_SUFFIX)


def encode_run_journal(journal: RunJournal) -> bytes:
    """Write a journal, one JSON object to a line, in ASCII."""
    head = {
        "schema_version": SCHEMA_VERSION,
        "plan": journal.plan,
        "host": journal.host,
        "user": journal.user,
        "started_ms": journal.started_ms,
        "finished_ms": journal.finished_ms,
        "metadata": [dict(each) for each in journal.metadata],
        "log_dirs": list(journal.log_dirs),
    }
    return "".join(f"{json.dumps(each)}\n" for each in (head, *journal.lines)).encode("ascii")


def parse_run_journal(data: bytes) -> RunJournal:
    """Read a journal.

    Raises:
        DamagedFileError: the bytes are no journal, or a journal of another release.
    """
    first, *rest = data.splitlines() or [b""]
    reader = json_text.FieldReader.of_file(first, FORMAT, SCHEMA_VERSION)
    finished, log_dirs = reader.raw("finished_ms"), reader.values.get("log_dirs", [])
    if not isinstance(log_dirs, list) or not all(isinstance(each, str) for each in log_dirs):
        reader.note("log_dirs: expected a list of paths")
        log_dirs = []
    journal = RunJournal(
        reader.text("plan"),
        reader.text("host"),
        reader.text("user"),
        reader.integer("started_ms", bits=64, least=0),
        None if finished is None else reader.integer("finished_ms", bits=64, least=0),
        tuple({key: str(value) for key, value in each.values.items()} for each in reader.objects("metadata")),
        tuple(_lines(rest)),
        tuple(log_dirs),
    )
    reader.check(FORMAT)
    return journal


def _lines(lines: Sequence[bytes]) -> list[Mapping[str, Any]]:
    try:
        return [json_text.parse_object(line, FORMAT) for line in lines]
    except DamagedFileError as error:
        raise DamagedFileError(FORMAT, f"a line of it: {error.problem}") from error
