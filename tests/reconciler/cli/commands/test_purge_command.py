"""``logstore purge`` from end to end."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import Result

from layout.ids import TopicId
from layout.ours import LedgerEvent, RunJournal, encode_run_journal, run_journal_name
from layout.scheme import LEDGER_FILE, UNCLEAN_FILE
from layout.topic import TopicPartition
from logstore.fs import Directory, Disk
from logstore.log_dir import (
    FallbackRecords,
    FileHolder,
    LogDir,
    StagingBeside,
    StagingLock,
    UnseenProcess,
    find_lock_holder,
)
from logstore.log_dir.lock import Lock
from logstore.purge import LogDirPurge
from logstore.staging import (
    Candidate,
    Placement,
    adopt_stray,
    list_staged,
    note_event,
    open_staging_root,
    stage,
)
from reconciler.cli.commands.purge import freed_text, say_unseen, until_interrupted
from reconciler.cli.frame import SecondLook, ask_again, parse_rate, say_went_back
from reconciler.desired import DesiredBuilder, MetadataIdentity
from reconciler.errors import UsageError
from reconciler.next_steps import Call
from reconciler.sources import load
from reconciler.sources.parquet import save_state
from tests.logstore.engine import ledger_events, picture
from tests.patience import PATIENCE_S, killed_at_last
from tests.reconciler.cli.conftest import CLUSTER, ORDERS, REPOSITORY, make_log_dir

Run = Callable[..., Result]
LONG_AGO_MS, HOUR_MS = 1_000_000, 3_600_000
OTHERS = TopicId(bytes(range(50, 66)))
FAR_AWAY_MS = 80 * 366 * 24 * HOUR_MS


def stage_replica(log_dir: str, partition: int, delay_ms: int = 0) -> str:
    """Stage one replica of the small cluster; its location."""
    what = Candidate(
        f"orders-{partition}", TopicPartition("orders", partition), ORDERS, "NOT_ASSIGNED", "moved away", delay_ms
    )
    with LogDir.open(log_dir) as opened:
        (staged,) = stage(opened, [what], LONG_AGO_MS).staged
    return staged.location


@pytest.fixture
def log_dir(cluster) -> str:
    """Of broker 1; ``orders-0`` is staged and due, ``orders-1`` waits for many years."""
    stage_replica(cluster.log_dirs[0], 0)
    stage_replica(cluster.log_dirs[0], 1, FAR_AWAY_MS)
    return cluster.log_dirs[0]


def below(log_dir: str) -> set[str]:
    return set(os.listdir(f"{log_dir}.deleting")) - {LEDGER_FILE}


def test_an_audit_leads_from_what_is_due_and_wanted_again_to_the_plan_that_brings_it_back(
    cluster, run: Run, log_dir: str
) -> None:
    verdicts = ("--verdict", "STAGED_DUE", "--format", "json")
    (found,) = json.loads(run("audit", log_dir, "--metadata", cluster.metadata, *verdicts).stdout)["findings"]
    assert shlex.split(found["next"]) == ["logstore", "doctor", log_dir, "--metadata", str(cluster.metadata)]
    doctor = json.loads(run(*shlex.split(found["next"])[1:], "--format", "json").stdout)
    (plan,) = (step for step in doctor["brokers"][0]["next"] if (step["command"] or "").startswith("logstore plan"))
    assert "bring 2 back that are wanted" in plan["why"]


def test_a_dry_run_prints_what_a_real_run_prints_and_changes_nothing(run: Run, log_dir: str) -> None:
    before = below(log_dir)
    planned = run("purge", log_dir, "--dry-run")
    assert below(log_dir) == before
    done = run("purge", log_dir)
    assert (planned.exit_code, done.exit_code) == (0, 0)
    assert planned.stdout == done.stdout
    lines = done.stdout.splitlines()
    assert lines[0] == (
        f"{log_dir}: purge ../broker-1.deleting/{ORDERS}_0: orders-0, topic ID {ORDERS}, 2 files, 8.2 kB, "
        "due 1970-01-01 00:16:40 UTC"
    )
    assert lines[1].startswith(f"{log_dir}: 1 directory, 8.2 kB; 1 not due, the next at 2050-")
    assert below(log_dir) == {f"{ORDERS}_1"}
    assert "8.2 kB expected" in done.stderr


def test_what_is_not_due_goes_only_when_it_is_named_and_that_is_said(run: Run, log_dir: str) -> None:
    location = f"../broker-1.deleting/{ORDERS}_1"
    kept = run("purge", log_dir, "--location", location)
    assert (kept.exit_code, "nothing was purged" in kept.stderr) == (1, True)
    assert kept.stderr.splitlines()[-1] == f"    logstore staged {log_dir}"
    refused = run("purge", log_dir, "--before-due")
    assert refused.exit_code == 2
    assert "--location" in refused.stderr
    assert below(log_dir) == {f"{ORDERS}_0", f"{ORDERS}_1"}
    assert run("purge", log_dir, "--location", location, "--before-due").exit_code == 0
    assert below(log_dir) == {f"{ORDERS}_0"}


def test_of_what_is_named_it_is_said_no_more_than_is_known_when_nothing_was_purged(
    cluster, run: Run, log_dir: str
) -> None:
    gone = run("purge", log_dir, "--location", f"../broker-1.deleting/{ORDERS}_7", "--before-due").stderr
    assert "_7 is not staged here with a record\n" in gone and "--before-due takes it now" not in gone
    other = str(make_log_dir(cluster.folder / "b" / "kafka", 1, {"orders-0": ORDERS}))
    stage_replica(other, 0, FAR_AWAY_MS)
    Path(other, "meta.properties").write_bytes(b"\0")
    named = f"../kafka.deleting/{ORDERS}_0"
    result = run("purge", log_dir, other, "--location", named, "--before-due")
    assert result.exit_code == 4
    assert f"nothing was purged: {named} is not staged in what could be opened with a record\n" in result.stderr


def test_a_location_that_two_log_dirs_have_purges_neither_and_a_whole_path_the_one_that_is_meant(
    cluster, run: Run
) -> None:
    disks = [str(make_log_dir(cluster.folder / disk / "kafka", 1, {"orders-0": ORDERS})) for disk in ("a", "b")]
    for disk in disks:
        stage_replica(disk, 0, FAR_AWAY_MS)
    staged = f"{ORDERS}_0"
    one = f"../kafka.deleting/{staged}"
    for verb, options in (("purge", ["--before-due"]), ("purge", ["--dry-run"]), ("restore", []), ("restore", ["-q"])):
        refused = run(verb, *disks, "--location", one, *options)
        assert refused.exit_code == 2
        assert f"--location {one} is in 2 log dirs, and nothing was changed" in refused.stderr
        assert f"{disks[0]}.deleting/{staged} or {disks[1]}.deleting/{staged}" in refused.stderr
        assert [below(disk) for disk in disks] == [{staged}, {staged}]
    assert run("purge", *disks, "--location", f"{disks[1]}.deleting/{staged}", "--before-due").exit_code == 0
    assert [below(disk) for disk in disks] == [{staged}, set()]
    assert run("purge", *disks, "--location", one, "--before-due", "--dry-run").exit_code == 0, "only one has it now"
    assert run("restore", *disks, "--location", f"{disks[0]}.deleting/{staged}").exit_code == 0
    assert below(disks[0]) == set() and os.path.isdir(f"{disks[0]}/orders-0")


def test_the_command_that_brings_back_what_is_wanted_again_names_it_alone(cluster, run: Run) -> None:
    disks = [
        str(make_log_dir(cluster.folder / disk / "kafka", 1, {"orders-0": topic_id}))
        for disk, topic_id in (("a", ORDERS), ("b", OTHERS))
    ]
    for disk, topic_id in zip(disks, (ORDERS, OTHERS), strict=True):
        what = Candidate("orders-0", TopicPartition("orders", 0), topic_id, "NOT_ASSIGNED", "moved away", 0)
        with LogDir.open(disk) as opened:
            stage(opened, [what], LONG_AGO_MS)
    os.mkdir(f"{disks[1]}.deleting/{ORDERS}_0")
    kept = run("purge", *disks, "--metadata", cluster.metadata, "--dry-run")
    printed = next(line.strip() for line in kept.stderr.splitlines() if line.strip().startswith("logstore restore"))
    assert shlex.split(printed)[4:6] == ["--location", f"{disks[0]}.deleting/{ORDERS}_0"]
    assert run(*shlex.split(printed)[1:], "--without-twin").exit_code == 0
    assert os.path.isdir(f"{disks[0]}/orders-0") and below(disks[0]) == set()


def test_a_stray_that_a_broker_left_is_kept_and_reported(run: Run, log_dir: str) -> None:
    stray = Path(log_dir) / f"orders-7.{'0' * 32}-stray"
    stray.mkdir()
    result = run("purge", log_dir)
    said = "no record here says when it may go: a broker left it, or its record lies elsewhere"
    assert f"{log_dir}: keep {stray.name}: {said}" in result.stdout.splitlines()
    assert stray.exists()
    assert f"    logstore plan {log_dir} --metadata SOURCE --strays -o plan.json\n" in result.stderr
    assert "logstore plan" not in run("purge", log_dir, "--quiet").output


def test_a_purge_that_asks_metadata_names_them_in_the_plan_for_strays(cluster, run: Run) -> None:
    log_dir, spare = cluster.log_dirs[0], cluster.folder / "spare records"
    (Path(log_dir) / f"orders-7.{'0' * 32}-stray").mkdir()
    spare.mkdir()
    result = run("purge", log_dir, "--metadata", cluster.metadata, "--spare-records", spare, "--dry-run")
    passed_on = f"--spare-records '{spare}'"
    planned = f"    logstore plan {log_dir} --metadata {cluster.metadata} --strays {passed_on} -o plan.json\n"
    assert planned in result.stderr


@contextmanager
def running_broker(log_dir: str) -> Iterator[None]:
    """A broker holds its log dir's lock, and knows nothing of the staging root beside it."""
    with Directory.open(log_dir) as root:
        lock = Lock.take(root, Disk())
        yield
        lock.release()


def test_what_another_run_works_on_is_refused_and_the_others_go_on(run: Run, cluster, log_dir: str) -> None:
    with LogDir.open(log_dir):
        alone = run("purge", log_dir)
        assert (alone.exit_code, alone.stdout) == (3, "")
        assert f"{log_dir}.deleting is in use by process {os.getpid()} " in alone.stderr
        assert run("purge", log_dir, cluster.log_dirs[1]).exit_code == 4
    with StagingBeside.open(log_dir):
        assert run("purge", log_dir).exit_code == 3
        assert run("restore", log_dir, "--all").exit_code == 3


def test_beside_a_running_broker_what_lies_outside_its_log_dir_goes(run: Run, cluster, log_dir: str) -> None:
    before = picture(Path(log_dir), but=())
    with running_broker(log_dir):
        planned = run("purge", log_dir, cluster.log_dirs[1], "--dry-run")
        assert f"{log_dir} is in use by process {os.getpid()} " in planned.stderr
        assert "this is only a look" in planned.stderr
        done = run("purge", log_dir, cluster.log_dirs[1])
    assert (planned.exit_code, done.exit_code, planned.stdout) == (0, 0, done.stdout)
    assert f"purge ../broker-1.deleting/{ORDERS}_0" in done.stdout
    assert below(log_dir) == {f"{ORDERS}_1"}
    assert picture(Path(log_dir), but=()) == before


def test_what_lies_in_the_log_dir_waits_for_the_broker_and_is_counted(run: Run, log_dir: str) -> None:
    name = due_stray(log_dir)
    with running_broker(log_dir):
        planned, done = run("purge", log_dir, "--dry-run"), run("purge", log_dir)
    for result in (planned, done):
        assert result.exit_code == 1
        assert "1 directory that is due lies in the log dir itself, and nothing is purged there" in result.stderr
        assert f"{log_dir} is in use by process {os.getpid()} " in result.stderr
    assert planned.stdout == done.stdout
    assert (below(log_dir), (Path(log_dir) / name).exists()) == ({f"{ORDERS}_1"}, True)
    assert run("purge", log_dir).exit_code == 0
    assert not (Path(log_dir) / name).exists()


def test_the_line_for_cron_purges_while_a_broker_runs(run: Run, cluster, log_dir: str) -> None:
    (line,) = [line for line in run("purge", "--help").stdout.splitlines() if line.strip().startswith("*/10 ")]
    command = line.split("root", 1)[1].replace("/disks/*/kafka", log_dir)
    program, *words = shlex.split(command)
    with running_broker(log_dir):
        result = run(*words)
    assert (program, result.exit_code, below(log_dir)) == ("logstore", 0, {f"{ORDERS}_1"})


def test_processes_that_could_not_be_looked_into_are_named_once_with_the_reason(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    java = UnseenProcess(FileHolder(42, "java"), "Operation not permitted")
    reports = [LogDirPurge(path, unseen_processes=(java,)) for path in ("/disk1", "/disk2")]
    for user, advice in ((0, ""), (1000, "; root may look into them")):
        monkeypatch.setattr(os, "geteuid", lambda user=user: user)
        say_unseen(reports)
        assert capsys.readouterr().err == (
            "logstore: 1 process could not be looked into, and may hold files open: "
            f"process 42 (java): Operation not permitted{advice}\n"
        )


def test_help_names_the_way_out_for_strays(run: Run) -> None:
    assert "'logstore plan --strays'" in run("purge", "--help").stdout


def test_what_is_no_log_dir_is_a_usage_error(run: Run, tmp_path: Path, log_dir: str) -> None:
    assert run("purge", tmp_path / "missing").exit_code == 2
    assert run("purge", tmp_path / "missing", "--dry-run").exit_code == 2
    assert run("purge", log_dir, "--spare-records", tmp_path / "missing").exit_code == 2


def test_quiet_prints_the_sums_alone_and_rates_are_accepted(run: Run, log_dir: str) -> None:
    result = run("purge", log_dir, "--quiet", "--rate", "1G", "--unlinks", "1000", "--workers", "1")
    assert len(result.stdout.splitlines()) == 1
    assert below(log_dir) == {f"{ORDERS}_1"}


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="there is no /proc")
def test_held_files_are_reported_and_can_be_a_reason_to_wait(run: Run, log_dir: str) -> None:
    with open(f"{log_dir}.deleting/{ORDERS}_0/00000000000000000000.log", "rb"):
        waiting = run("purge", log_dir, "--keep-held")
        assert f"held open by process {os.getpid()}" in waiting.stdout
        assert f"{ORDERS}_0" in below(log_dir)
        done = run("purge", log_dir)
        assert f"in 1 file held open by process {os.getpid()}" in done.stderr
        assert "returns when the process lets go" in done.stderr


@pytest.mark.parametrize(
    ("text", "rate"), [("100M", 10**8), ("1.5G", 15 * 10**8), ("4096", 4096), ("10 kB/s", 10**4), ("2TB", 2 * 10**12)]
)
def test_rates_read_as_people_write_them(text: str, rate: int) -> None:
    assert parse_rate(text) == rate


@pytest.mark.parametrize("text", ["", "fast", "-1M", "0", "1e999", "nan", "M"])
def test_what_is_no_rate_is_said(text: str) -> None:
    with pytest.raises(UsageError, match="is no rate"):
        parse_rate(text)


def test_an_interrupt_cancels_and_waits_for_the_end() -> None:
    cancel = threading.Event()

    def work() -> str:
        os.kill(os.getpid(), signal.SIGINT)
        assert cancel.wait(PATIENCE_S)
        return "ended"

    former = signal.getsignal(signal.SIGINT)
    assert until_interrupted(work, cancel) == "ended"
    assert signal.getsignal(signal.SIGINT) is former


def test_a_signal_in_the_middle_of_another_does_not_wait_for_it() -> None:
    class Interrupted(threading.Event):
        begun = 0

        def set(self) -> None:
            self.begun += 1
            if self.begun == 1:
                signal.raise_signal(signal.SIGTERM)
            super().set()

    cancel = Interrupted()

    def work() -> bool:
        os.kill(os.getpid(), signal.SIGINT)
        return cancel.wait(PATIENCE_S)

    assert until_interrupted(work, cancel)
    assert cancel.begun == 1, "an event is set under a lock that no thread takes twice"


def test_interrupted_it_says_so_and_leaves_the_rest_to_the_next(cluster, log_dir: str) -> None:
    with slow_purge(log_dir) as child:
        child.terminate()
        _, said = child.communicate(timeout=PATIENCE_S)
    assert child.returncode == 130
    assert "the next purge goes on" in said
    assert "Traceback" not in said
    assert not Path(log_dir, UNCLEAN_FILE).exists()


def test_a_broker_can_be_started_as_soon_as_what_lies_in_its_log_dir_itself_is_gone(run: Run, log_dir: str) -> None:
    """However long the purge of what lies beside the log dir takes, it does not hold Kafka's lock."""
    name = due_stray(log_dir)
    with slow_purge(log_dir) as child:
        assert not (Path(log_dir) / name).exists(), "what lies in the log dir goes first"
        assert not Path(log_dir, UNCLEAN_FILE).exists()
        with running_broker(log_dir):
            assert child.poll() is None, "the purge goes on"
            other = run("purge", log_dir)
            assert (other.exit_code, f"{log_dir}.deleting is in use by process {child.pid} " in other.stderr) == (
                3,
                True,
            )
            child.terminate()
            child.communicate(timeout=PATIENCE_S)
    assert below(log_dir) >= {f"{ORDERS}_0", f"{ORDERS}_1"}
    assert run("purge", log_dir).exit_code == 0
    assert below(log_dir) == {f"{ORDERS}_1"}


def test_where_the_staging_root_cannot_be_locked_the_log_dir_stays_locked_until_the_purge_is_over(
    run: Run, log_dir: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on some network file systems: nobody else may work there meanwhile."""
    monkeypatch.setattr(StagingLock, "take", lambda *_, **__: None)
    opened: list[bool] = []

    def looked(*_: object, **__: object) -> str | None:
        opened.append(find_lock_holder(log_dir) is not None)
        return None

    monkeypatch.setattr("logstore.purge.run.note_event", lambda *given, **how: (looked(), note_event(*given, **how))[1])
    assert run("purge", log_dir).exit_code == 0
    assert (below(log_dir), opened) == ({f"{ORDERS}_1"}, [True, True])


def due_stray(log_dir: str) -> str:
    """Put a stray that is due into the log dir itself; its name."""
    name = f"orders-7.{'0' * 32}-stray"
    (Path(log_dir) / name).mkdir()
    with LogDir.open(log_dir) as opened:
        (stray,) = [each for each in list_staged(opened) if each.name == name]
        adopt_stray(opened, stray, ("STRAY", "nobody wants it"), LONG_AGO_MS, 0)
    return name


@contextmanager
def slow_purge(log_dir: str) -> Iterator[subprocess.Popen[str]]:
    """A purge that is at work on what lies beside a log dir: at one byte in a second its end is an hour away."""
    command = [sys.executable, "-m", "reconciler.cli", "purge", log_dir, "--rate", "1"]
    staging = Path(f"{log_dir}.deleting")
    started = subprocess.Popen(command, cwd=REPOSITORY, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with killed_at_last(started) as child:
        while LedgerEvent.PURGING not in ledger_events(staging).values() and child.poll() is None:
            time.sleep(0.01)
        yield child


def test_space_that_others_took_meanwhile_is_not_reported_as_a_negative_number() -> None:
    assert freed_text(1_700_000, 1_200_000) == "1.7 MB freed, 1.2 MB expected, as the file system counts it"
    assert freed_text(0, 5000) == "0 B freed, 5.0 kB expected, as the file system counts it"
    assert freed_text(-425_000_000, 590_000) == (
        "590 kB expected, and 425 MB less free than before: others write to the file system"
    )


def saved(
    folder: Path,
    replicas: list[int],
    *,
    topic: str = "orders",
    as_of_ms: int | None = None,
    uncommitted: tuple[str, ...] = (),
) -> Path:
    """Metadata that wants both partitions of ``orders`` on these brokers, as of now."""
    builder = DesiredBuilder()
    for partition in range(2):
        builder.partition(topic, str(ORDERS), partition, replicas)
    builder.partition("others", str(OTHERS), 0, [1, 2])
    spoken_ms = time.time_ns() // 1_000_000 if as_of_ms is None else as_of_ms
    folder.mkdir()
    identity = MetadataIdentity("kraft", "a test", CLUSTER, timestamp_ms=spoken_ms, uncommitted=uncommitted)
    save_state(builder.build(identity), str(folder))
    return folder


@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
@pytest.mark.parametrize("topic", ["orders", "sales"])
def test_what_is_wanted_again_is_kept_with_the_command_that_brings_it_back(
    run: Run, log_dir: str, tmp_path: Path, dry: tuple[str, ...], topic: str
) -> None:
    """Under the name that the metadata has for its topic ID, which may be another one by now."""
    before = below(log_dir)
    result = run("purge", log_dir, "--metadata", saved(tmp_path / "again", [1, 2], topic=topic), *dry)
    assert (result.exit_code, below(log_dir)) == (1, before)
    why = f"the metadata wants {topic}-0 with topic ID {ORDERS} here again"
    assert f"{log_dir}: keep ../broker-1.deleting/{ORDERS}_0: {why}" in result.stdout.splitlines()
    assert "is wanted again; bring it back while the broker is stopped" in result.stderr
    (command,) = [line.strip() for line in result.stderr.splitlines() if line.startswith("    logstore restore ")]
    assert run(*shlex.split(command)[1:]).exit_code == 0
    assert Path(log_dir, f"{topic}-0").is_dir()


def test_metadata_that_went_back_keeps_what_it_wants_and_brings_nothing_back(
    run: Run, log_dir: str, tmp_path: Path
) -> None:
    """A plan that was applied here was made from newer metadata, so 'plan' refuses the same restore."""
    now_ms = time.time_ns() // 1_000_000
    newer = {"source": "kraft", "cluster_id": CLUSTER, "timestamp_ms": str(now_ms + 3_600_000)}
    journal = RunJournal("ab" * 32, "a-host", "a user", now_ms, now_ms, (newer,), (), (log_dir,))
    Path(log_dir, run_journal_name(now_ms, "ab" * 32)).write_bytes(encode_run_journal(journal))
    before, again = below(log_dir), saved(tmp_path / "again", [1, 2])
    result = run("purge", log_dir, "--metadata", again)
    assert (result.exit_code, below(log_dir)) == (1, before)
    assert f"with topic ID {ORDERS} here again, but went back in time" in result.stdout
    assert f"{again} went back in time: it speaks as of " in result.stderr
    assert "wanted again" not in result.stderr and "logstore restore" not in result.stderr
    assert result.stderr.count(f"    logstore doctor {log_dir} --metadata SOURCE\n") == 1
    restored = run("restore", log_dir, "--all", "--metadata", again, "--dry-run")
    assert f"{again} went back in time: it speaks as of " in restored.stderr
    (state,) = load(str(again))
    assert say_went_back(state, CLUSTER, [log_dir]) and not say_went_back(state, "another-cluster", [log_dir])


def test_what_is_wanted_no_more_is_purged_after_asking(run: Run, log_dir: str, tmp_path: Path) -> None:
    with running_broker(log_dir):
        result = run("purge", log_dir, "--metadata", saved(tmp_path / "moved", [2, 3]))
    assert (result.exit_code, below(log_dir)) == (0, {f"{ORDERS}_1"}), result.output


def test_metadata_that_cannot_be_trusted_purges_nothing(run: Run, log_dir: str, tmp_path: Path) -> None:
    before = below(log_dir)
    result = run("purge", log_dir, "--metadata", saved(tmp_path / "old", [2, 3], as_of_ms=1000))
    assert (result.exit_code, below(log_dir)) == (3, before)
    assert "is the most" in result.stderr and "purge without --metadata, which asks nobody" in result.stderr
    assert run("purge", log_dir, "--metadata", "none").exit_code == 3
    assert below(log_dir) == before


def test_what_records_speak_of_that_may_be_taken_back_stays(run: Run, log_dir: str, tmp_path: Path) -> None:
    before = below(log_dir)
    moved = saved(tmp_path / "moved", [2, 3], uncommitted=(str(ORDERS),))
    result = run("purge", log_dir, "--metadata", moved)
    assert (result.exit_code, below(log_dir)) == (0, before)
    assert "what the metadata says of its topic may still be taken back" in result.stdout


def test_what_was_staged_after_the_metadata_speaks_stays(run: Run, log_dir: str, tmp_path: Path) -> None:
    now_ms = time.time_ns() // 1_000_000
    (Path(log_dir) / "late-0").mkdir()
    late = Candidate("late-0", TopicPartition("late", 0), None, "UNKNOWN_TOPIC", "nobody knows it", 0)
    with LogDir.open(log_dir) as opened:
        (staged,) = stage(opened, [late], now_ms - 1000).staged
    result = run("purge", log_dir, "--metadata", saved(tmp_path / "moved", [2, 3], as_of_ms=now_ms - 2000))
    assert f"keep {staged.location}: it was staged after " in result.stdout
    assert staged.name in below(log_dir)


def test_what_nobody_was_asked_about_stays_and_half_of_a_replica_does_not(
    run: Run, log_dir: str, tmp_path: Path
) -> None:
    look = ask_again(Call((log_dir,), (str(saved(tmp_path / "again", [1, 2])),)), FallbackRecords(None))
    assert isinstance(look, SecondLook)
    with LogDir.open(log_dir) as opened:
        due, later = list_staged(opened)
        assert "here again" in str(look.veto(due))
        assert due.record is not None
        restaged = due._replace(record=due.record._replace(staged_ms=LONG_AGO_MS + 1))
        assert look.veto(restaged) == "it was staged after the metadata was asked"
        root = open_staging_root(opened, Placement.SIBLING)
        assert root is not None
        with root:
            note_event(opened, root, FallbackRecords(None), LedgerEvent.PURGING, [due.name], durable=True)
    assert "here again" in str(look.veto(later))
    half = ask_again(Call((log_dir,), (str(tmp_path / "again"),)), FallbackRecords(None))
    assert half.veto(due) is None, "a purge has begun to empty it, so that it cannot come back"
