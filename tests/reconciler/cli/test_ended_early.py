"""Every verb of the command line, when nobody reads its output, and when it is interrupted in its middle.

The verbs are those of the command line itself, so a new one fails here until it has its row.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest

from layout.scheme import LEDGER_FILE
from logstore.namespaces import create_namespace
from logstore.store import LogStore
from reconciler.cli import logstore
from reconciler.cli.frame import Exit, is_output_unread
from reconciler.plan import ALLOWABLE
from reconciler.protocol.json_messages import encode_json
from tests.logstore.changes import fill_store, two_disks
from tests.patience import PATIENCE_S
from tests.reconciler.cli.conftest import ORDERS, REPOSITORY, Cluster
from tests.reconciler.protocol.control_requests import FULL, leader_and_isr, topic

pytestmark = pytest.mark.usefixtures("every_signal_heard")

Contents = dict[str, bytes | None]


@dataclass(frozen=True)
class Disks:
    """The small cluster, two disks of ours beside it, and the command line in this process."""

    cluster: Cluster
    run: Callable[..., Any]

    @property
    def disk(self) -> str:
        """A broker's only log dir; one of its two replicas is stale."""
        return self.cluster.log_dirs[1]

    @property
    def metadata(self) -> tuple[str, str]:
        return "--metadata", self.cluster.metadata

    def file(self, name: str) -> str:
        return str(self.cluster.folder / name)

    def done(self, *words: object) -> None:
        result = self.run(*words)
        assert result.exit_code in (Exit.CLEAN, Exit.FINDINGS), result.output

    def plan(self) -> str:
        allowed = [word for gate in ALLOWABLE for word in ("--allow", gate.value)]
        limits = ("--max-share", "100%", "--delay", "0ms")
        self.done("plan", self.disk, *self.metadata, *limits, *allowed, "-o", self.file("plan"))
        return self.file("plan")

    def policy(self) -> str:
        Path(self.file("policy")).write_text("foreign = ['lost+found']\n", encoding="utf-8")
        return self.file("policy")

    def staged(self) -> str:
        self.done("apply", self.plan())
        return self.disk

    def repair_plan(self) -> str:
        (Path(self.disk) / "orders-0" / "partition.metadata").write_bytes(b"garbage")
        self.done("repair", self.disk, *self.metadata, "--adopt-topic-id", "orders", "-o", self.file("plan"))
        return self.file("plan")

    def request(self) -> list[str]:
        Path(self.file("request")).write_bytes(encode_json(leader_and_isr(FULL, topic("orders", ORDERS, 0, 1)), 7))
        gates = ("cluster", "sole-copy", "create", "absent", "empty")
        return [self.file("request"), self.disk, "--max-share", "100%", *(f"--allow={gate}" for gate in gates)]

    def results(self) -> list[str]:
        for name in ("old", "new"):
            self.done("audit", self.disk, *self.metadata, "--format", "json", "-o", self.file(name))
        return [self.file("old"), self.file("new")]

    def ours(self) -> list[str]:
        made = [str(path) for path in two_disks(self.cluster.folder / "ours")]
        with LogStore.open(made) as store:
            create_namespace(store, "org")
            fill_store(store, "org:orders", "org:clicks")
        return made


@dataclass(frozen=True)
class Verb:
    """How a verb is called, what is called in its middle, and its exit codes.

    Attributes:
        words: prepares the disks, and gives the whole command line.
        middle: module and function; the interrupt comes with the first call.
        unread: exit code where nobody reads standard output.
        interrupted: exit code after the interrupt.
        changes: the same command is given again after the interrupt, and does the rest.
        again: its exit codes then. Recovery may have finished a change of names, which is refused then.
    """

    words: Callable[[Disks], list[Any]]
    middle: str
    unread: Exit = Exit.CLOSED_PIPE
    interrupted: Exit = Exit.INTERRUPTED
    changes: bool = False
    again: tuple[Exit, ...] = (Exit.CLEAN, Exit.FINDINGS)


STEPS = "logstore.journal.steps:do_steps"
SILENT = Exit.CLEAN
"""A change that says on standard error that it is done, and writes nothing else."""

FINISHED = (Exit.CLEAN, Exit.USAGE, Exit.REFUSED)

VERBS = {
    "doctor": Verb(lambda on: ["doctor", on.disk, *on.metadata], "reconciler.cli.examination.examined_broker:examine"),
    "scan": Verb(lambda on: ["scan", on.disk], "logstore.scan.walk:walk_log_dir"),
    "audit": Verb(lambda on: ["audit", on.disk, *on.metadata], "reconciler.audit.embedded:audit"),
    "where": Verb(lambda on: ["where", "orders", on.disk, *on.metadata], "reconciler.whereabouts.copies:copies_of"),
    "diff": Verb(lambda on: ["diff", *on.results()], "reconciler.history.diff:compare_results"),
    "explain": Verb(
        lambda on: ["explain", f"{on.disk}/orders-1", *on.metadata], "reconciler.cli.pages.explanation:scan_rows"
    ),
    "preflight": Verb(lambda on: ["preflight", on.disk, *on.metadata], "reconciler.preflight.judgement:preflight"),
    "plan": Verb(lambda on: ["plan", on.disk, *on.metadata], "reconciler.plan.proposal:make_plan"),
    "policy check": Verb(
        lambda on: ["policy", "check", on.policy(), on.disk, *on.metadata], "reconciler.plan.proposal:make_plan"
    ),
    "apply": Verb(lambda on: ["apply", on.plan()], "reconciler.plan.apply:_ApplyRun._stage", changes=True),
    "reconcile": Verb(lambda on: ["reconcile", *on.request()], "reconciler.broker.carry_out:carry_out", changes=True),
    "topic-ids": Verb(lambda on: ["topic-ids", "zk:2181"], "reconciler.topic_ids.write:read_cluster"),
    "repair": Verb(
        lambda on: ["repair", "--apply", on.repair_plan()], "logstore.repair.backup:repair_files", changes=True
    ),
    # A watch is ended by a signal or by its reader, and by nothing else.
    "watch": Verb(
        lambda on: ["watch", on.disk, *on.metadata, "--initial"],
        *("reconciler.watch.stream:verdict_changes", Exit.CLEAN, Exit.CLEAN),
    ),
    "staged": Verb(lambda on: ["staged", on.staged()], "logstore.staging.listing:find_staged"),
    "restore": Verb(lambda on: ["restore", on.staged(), "--all"], "logstore.staging.bring_back:restore", changes=True),
    "namespace acls": Verb(
        lambda _: ["namespace", "acls", "zk:2181", "org"], "reconciler.namespaces.write:read_namespace"
    ),
    "namespace configs": Verb(
        lambda _: ["namespace", "configs", "zk:2181", "org"], "reconciler.namespaces.write:read_namespace"
    ),
    "namespace create": Verb(
        lambda on: ["namespace", "create", "org:apache", *on.ours()], STEPS, SILENT, changes=True, again=FINISHED
    ),
    "namespace delete": Verb(
        lambda on: ["namespace", "delete", "org", *on.ours(), "--recursive"],
        STEPS,
        SILENT,
        changes=True,
        again=FINISHED,
    ),
    "namespace list": Verb(
        lambda on: ["namespace", "list", *on.ours()], "logstore.journal.namespace_dirs:find_namespace_dirs"
    ),
    "namespace move": Verb(
        lambda on: ["namespace", "move", "org:orders", *on.ours(), "--to", ""],
        STEPS,
        SILENT,
        changes=True,
        again=FINISHED,
    ),
    "namespace rename": Verb(
        lambda on: ["namespace", "rename", "org:orders", "org:sales", *on.ours()],
        STEPS,
        SILENT,
        changes=True,
        again=FINISHED,
    ),
    "convert": Verb(lambda on: ["convert", *on.ours(), "--to", "by-topic-id"], STEPS, SILENT, changes=True),
    "purge": Verb(lambda on: ["purge", on.staged()], "logstore.purge.run:purge", changes=True),
    "completion": Verb(lambda _: ["completion", "bash"], "reconciler.cli.commands.guide.completion:script"),
    "runbook": Verb(lambda _: ["runbook", "disk-full"], "reconciler.cli.guide.shelf:read_page"),
    "help": Verb(lambda _: ["help", "sources"], "reconciler.cli.guide.shelf:read_page"),
    "simulate": Verb(lambda _: ["simulate", "--steps", "20"], "reconciler.simulator.runs.simulation:simulate"),
}


@pytest.fixture
def disks(cluster: Cluster, run: Callable[..., Any]) -> Disks:
    return Disks(cluster, run)


def leaves(group: click.Group, *before: str) -> Iterator[tuple[str, ...]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from leaves(command, *before, name)
        else:
            yield *before, name


def test_every_verb_of_the_command_line_is_here() -> None:
    assert sorted(VERBS) == sorted(map(" ".join, leaves(logstore)))


def process(words: list[Any], middle: str = "-", stdout: int = subprocess.PIPE) -> tuple[int, str]:
    """The exit code of a command line in a process group of its own, and what it says on standard error."""
    command = [sys.executable, "-m", "tests.reconciler.cli.interrupted_process", middle, *map(str, words)]
    ended = subprocess.run(
        command, cwd=REPOSITORY, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE,
        timeout=PATIENCE_S, start_new_session=True, check=False,
    )  # fmt: skip
    return ended.returncode, ended.stderr.decode()


def unread(words: list[Any]) -> tuple[int, str]:
    """The same, where standard output is a pipe whose reader has gone."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        return process(words, stdout=writing)
    finally:
        os.close(writing)


def contents(disks: Disks) -> Contents:
    found = sorted(disks.cluster.folder.rglob("*"))
    return {str(path): path.read_bytes() if path.is_file() else None for path in found}


@pytest.mark.parametrize("name", VERBS)
def test_output_that_nobody_reads_is_an_exit_code_and_not_a_word(disks: Disks, name: str) -> None:
    code, said = unread(VERBS[name].words(disks))
    assert code == VERBS[name].unread, said
    assert not [word for word in ("Traceback", "Exception", "Broken pipe", "bug in logstore") if word in said], said


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["audit", "--help"], ["namespace", "move", "--help"]])
def test_help_that_nobody_reads_is_no_different(words: list[str]) -> None:
    assert unread(words) == (Exit.CLOSED_PIPE, "")


@pytest.mark.parametrize("words", [["restore", "--all"], ["purge"]])
def test_a_change_goes_on_though_nobody_reads_of_it(disks: Disks, words: list[str]) -> None:
    before = Path(disks.staged(), "orders-1").exists()
    staging = Path(f"{disks.disk}.deleting")
    assert (before, len(os.listdir(staging))) == (False, 2)
    assert unread([words[0], disks.disk, *words[1:]])[0] == Exit.CLOSED_PIPE
    assert os.listdir(staging) == [LEDGER_FILE]
    assert Path(disks.disk, "orders-1").exists() == (words[0] == "restore")


def test_a_plan_that_nobody_reads_of_is_carried_out_whole_and_what_comes_next_is_said(disks: Disks) -> None:
    code, said = unread(["apply", disks.plan()])
    assert (code, Path(disks.disk, "orders-1").exists()) == (Exit.CLOSED_PIPE, False)
    assert all(each in said for each in ("1 action: 1 done", "undo: ", "next: ")), said
    (journal,) = (line.removeprefix("logstore: journal: ") for line in said.splitlines() if "journal: " in line)
    assert Path(journal).exists()
    again = disks.run("apply", disks.file("plan"))
    assert (again.exit_code, "1 action: 1 already" in again.stderr) == (Exit.CLEAN, True)


def test_a_repair_that_nobody_reads_of_is_done_and_says_how_it_is_taken_back(disks: Disks) -> None:
    code, said = unread(["repair", "--apply", disks.repair_plan()])
    assert code == Exit.CLOSED_PIPE
    assert Path(disks.disk, "orders-0", "partition.metadata").read_bytes() != b"garbage"
    (undo,) = (line.split() for line in said.splitlines() if "--undo" in line)
    assert unread(undo[1:])[0] == Exit.CLOSED_PIPE
    assert Path(disks.disk, "orders-0", "partition.metadata").read_bytes() == b"garbage"


@pytest.mark.parametrize(
    "module",
    ["reconciler.cli.verbs", "click", "reconciler.cli.frame.lifecycle", "reconciler.cli.commands.scan"],
)
def test_an_interrupt_while_the_command_line_is_loaded_is_a_sentence_that_nothing_was_done(module: str) -> None:
    program = (
        "import os, signal, sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name == {module!r}:\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from reconciler.cli import main\n"
        "main()\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, "scan", "."], cwd=REPOSITORY, capture_output=True, check=False
    )
    said = b"logstore: interrupted before anything was done\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (Exit.INTERRUPTED, b"", said)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_comes_when_all_is_done_and_said_does_not_change_the_exit_code(number: signal.Signals) -> None:
    program = (
        "import os\n"
        "class Last:\n"
        f"    def __del__(self, kill=os.kill, own=os.getpid()):\n"
        f"        kill(own, {int(number)})\n"
        "last = Last()\n"
        "from reconciler.cli import main\n"
        "main()\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, "--version"], cwd=REPOSITORY, capture_output=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (Exit.CLEAN, b"")
    assert ended.stdout.startswith(b"logstore")


@pytest.mark.parametrize("name", VERBS)
def test_an_interrupt_in_its_middle_is_a_sentence_and_an_exit_code(disks: Disks, name: str) -> None:
    words = VERBS[name].words(disks)
    before = contents(disks)
    code, said = process(words, VERBS[name].middle)
    assert code == VERBS[name].interrupted, said
    assert "Traceback" not in said and "bug in logstore" not in said, said
    assert said.count("interrupted") == (code == Exit.INTERRUPTED), said
    if VERBS[name].changes:
        code, said = process(words)
        assert code in VERBS[name].again, said
    else:
        assert contents(disks) == before


def test_a_pipe_is_unread_when_its_reader_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as output:
        monkeypatch.setattr("sys.stdout", output)
        assert not is_output_unread()
        os.close(reading)
        assert is_output_unread()
        monkeypatch.undo()
    assert signal.getsignal(signal.SIGPIPE) is signal.SIG_IGN, "else the write would have ended this process"
