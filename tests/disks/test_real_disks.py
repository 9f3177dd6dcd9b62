"""Disks of real brokers of each release, damaged as it happens in life: nothing is missed, and there is no false alarm.

``python -m tools.real_broker.fixtures tests/disks`` makes the archives anew. Each manifest says what was done to its
cluster and what follows from that; it was not written by what is tested here.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from layout.scheme import LEDGER_FILE
from reconciler.cli import logstore
from reconciler.sources import load
from reconciler.text import moment
from tools.real_broker.fixtures.archive import unpack
from tools.real_broker.fixtures.command import WAYS

HERE = Path(__file__).parent
MOST_BYTES = 400_000

ANY_AGE = ("--max-age", "36500d")
"""The metadata of an archive grow old, and what they say of its disks stays true."""

STAGED = {"STALE_ID", "NOT_ASSIGNED", "UNKNOWN_TOPIC"}
"""Verdicts on what a plan stages."""

Key = tuple[int, str, int, str]
"""Broker, topic, partition, and a verdict or an effect."""


@dataclass(frozen=True)
class Disks:
    """One archive, unpacked."""

    folder: Path
    manifest: dict[str, Any]

    @property
    def metadata(self) -> Path:
        """The controller's log dir, or ZooKeeper's data."""
        return self.folder / "metadata"

    def log_dirs(self, broker: str = "*") -> list[Path]:
        """The disks of one broker in the order of ``log.dirs``, or all."""
        return sorted(self.folder.glob(f"broker-{broker}/disk?"))

    def expected(self, column: str = "verdict", broker: int | None = None) -> Counter[Key]:
        """What was planted, under its verdict or another column; what has none is left out."""
        planted = (each for each in self.manifest["planted"] if broker in (None, each["broker"]) and each[column])
        return Counter((each["broker"], each["topic"], each["partition"], each[column]) for each in planted)

    def healthy(self) -> Counter[Key]:
        """The replicas that are wanted, less those of which something else is said."""
        wanted = (
            (broker, name, number)
            for name, topic in self.manifest["topics"].items()
            for number, brokers in enumerate(topic["replicas"])
            for broker in brokers
        )
        other = {
            (each["broker"], each["topic"], each["partition"])
            for each in self.manifest["planted"]
            if each["kind"] in ("live", "")
        }
        return Counter((*replica, "OK") for replica in wanted if replica not in other)

    def plannable(self) -> set[Key]:
        """What a plan acts on: no ID is written where another replica holds another one, which is left to a person."""
        planted = set(self.expected())
        stale = {topic for _, topic, _, verdict in planted if verdict == "STALE_ID"}
        return {key for key in planted if key[3] in STAGED or (key[3] == "NO_ID" and key[1] not in stale)}

    def run(self, verb: str, *arguments: object) -> Result:
        """Run a command, and do not look at how it ended."""
        return CliRunner().invoke(logstore, [verb, *map(str, arguments)])

    def audit(self, *arguments: object) -> dict[str, Any]:
        """The findings of an audit, those that are OK too."""
        ran = self.run("audit", *arguments, "--all", "--format", "json")
        assert ran.exit_code == 1, ran.output
        answer: dict[str, Any] = json.loads(ran.stdout)
        return answer


def unpacked(way: str, folder: Path) -> Disks:
    """The disks of one release and mode."""
    unpack(HERE / f"{way}.tar.xz", folder)
    return Disks(folder, json.loads((HERE / f"{way}.json").read_text(encoding="utf-8")))


@pytest.fixture(scope="module", params=WAYS)
def disks(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Disks:
    """The disks of each release and mode in turn, to be looked at and not changed."""
    return unpacked(request.param, tmp_path_factory.mktemp("disks") / request.param)


@pytest.fixture
def own_disks(disks: Disks, tmp_path: Path) -> Disks:
    """The same for one test alone, which may change them."""
    return unpacked(disks.folder.name, tmp_path / disks.folder.name)


@pytest.fixture(scope="module")
def audit(disks: Disks) -> dict[str, Any]:
    """The audit that most tests look at."""
    return disks.audit(*disks.log_dirs(), "--metadata", disks.metadata)


def verdicts(audit: dict[str, Any]) -> Counter[Key]:
    """What an audit says of replicas; log dirs and the metadata's own log are no replicas."""
    replicas = (each for each in audit["findings"] if each["topic"] not in (None, "__cluster_metadata"))
    return Counter((each["broker"], each["topic"], each["partition"], each["verdict"]) for each in replicas)


def files(folders: Iterable[Path]) -> Iterator[tuple[str, object]]:
    """Each file with its bytes; of a checkpoint its entries, whose order means nothing."""
    for folder in folders:
        for path in folder.rglob("*"):
            if path.is_file():
                content = path.read_bytes()
                is_checkpoint = path.name.endswith("-offset-checkpoint")
                yield str(path), Counter(content.splitlines()) if is_checkpoint else content


def test_the_archives_are_small_and_each_has_its_manifest() -> None:
    assert {path.name for path in HERE.iterdir() if path.suffix in (".xz", ".json")} == {
        f"{way}.{suffix}" for way in WAYS for suffix in ("tar.xz", "json")
    }
    assert sum((HERE / f"{way}.tar.xz").stat().st_size for way in WAYS) < MOST_BYTES


def test_no_file_tells_where_it_was_made(disks: Disks) -> None:
    for path in disks.folder.rglob("*"):
        if path.is_file():
            assert re.search(rb"/tmp/|/home/|real-broker|disk[12]", path.read_bytes()) is None, path


def test_brokers_stopped_cleanly_left_their_mark_and_the_one_that_was_killed_did_not(disks: Disks) -> None:
    marked = {path.parent.name for path in disks.log_dirs() if (path / ".kafka_cleanshutdown").exists()}
    assert marked == {"broker-1", "broker-2"}


def test_a_scan_tells_every_directory_as_what_its_broker_made_it(disks: Disks) -> None:
    ran = disks.run("scan", *disks.log_dirs(), "--format", "json")
    assert ran.exit_code == 0, ran.output
    rows = [row for row in json.loads(ran.stdout)["rows"] if row["kind"] not in ("log_dir", "internal")]
    planted = Counter(
        (each["broker"], each["topic"], each["partition"], each["kind"], each["topic_id"])
        for each in disks.manifest["planted"]
        if each["kind"]
    )
    healthy = Counter(
        (*replica, "live", disks.manifest["topics"][replica[1]]["topic_id"])
        for *replica, _ in disks.healthy().elements()
    )
    seen = Counter((row["node_id"], row["topic"], row["partition"], row["kind"], row["topic_id"]) for row in rows)
    assert seen == planted + healthy


def test_an_audit_finds_what_was_planted_and_nothing_else(disks: Disks, audit: dict[str, Any]) -> None:
    assert verdicts(audit) == disks.expected() + disks.healthy()


def test_an_audit_of_the_folder_alone_finds_the_metadata_and_the_same(disks: Disks) -> None:
    assert verdicts(disks.audit(disks.folder)) == disks.expected() + disks.healthy()


def test_topics_with_two_ids_are_reported_as_such_and_nothing_else_of_the_fleet(
    disks: Disks, audit: dict[str, Any]
) -> None:
    under_new_id = {topic for _, topic, _, _ in disks.healthy()}
    twice = {topic for _, topic, _, verdict in disks.expected() if verdict == "STALE_ID" and topic in under_new_id}
    assert twice
    assert Counter((each["kind"], each["subject"]) for each in audit["fleet"]) == Counter(
        ("TOPIC_UNDER_SEVERAL_IDS", topic) for topic in twice
    )


@pytest.mark.parametrize("broker", [1, 2, 3])
def test_preflight_tells_what_each_broker_would_do_and_nothing_else(disks: Disks, broker: int) -> None:
    mode = {"zk": "zookeeper", "kraft": "kraft"}[disks.manifest["mode"]]
    asked = ("--metadata", disks.metadata, "--kafka", disks.manifest["kafka"], "--mode", mode, "--format", "json")
    ran = disks.run("preflight", *disks.log_dirs(str(broker)), *asked)
    answer = json.loads(ran.stdout)
    assert answer["starts"], ran.output
    found = (each for each in answer["findings"] if each["effect"] != "note")
    effects = Counter((broker, each["topic"], each["partition"], each["effect"]) for each in found)
    assert effects == disks.expected("at_start", broker)
    assert ran.exit_code == (1 if effects else 0)


def test_a_plan_has_an_action_for_each_replica_that_is_not_wanted_and_no_other(own_disks: Disks) -> None:
    actions = plan(own_disks)["actions"]
    planned = Counter((each["log_dir"], each["topic"], each["partition"], each["verdict"]) for each in actions)
    assert planned == Counter(
        (str(log_dir), topic, partition, verdict)
        for broker, topic, partition, verdict in own_disks.plannable()
        for log_dir in own_disks.log_dirs(str(broker))
        if (log_dir / f"{topic}-{partition}").is_dir()
    )


def test_what_a_plan_staged_comes_back_byte_for_byte(own_disks: Disks) -> None:
    before = dict(files(own_disks.log_dirs()))
    written = {
        f"{action['log_dir']}/{action['name']}/partition.metadata"
        for action in plan(own_disks)["actions"]
        if action["kind"] == "write_topic_id"
    }
    applied = own_disks.run("apply", own_disks.folder / "plan.json")
    assert applied.exit_code == 0, applied.output
    assert {path for path in before if not Path(path).exists()}
    after = verdicts(own_disks.audit(*own_disks.log_dirs(), "--metadata", own_disks.metadata))
    assert not own_disks.plannable() & set(after)
    restored = own_disks.run("restore", *own_disks.log_dirs(), "--all")
    assert restored.exit_code == 0, restored.output
    now = dict(files(own_disks.log_dirs()))
    added = {
        path
        for path in now.keys() - before.keys()
        if not re.search(r"/(\.lock|\.logstore_run\.[^/]*|\.logstore_ledger)$", path)
    }
    assert added == written
    assert {path: content for path, content in now.items() if path in before} == before
    left = [path for path, _ in files(own_disks.folder.glob("broker-*/*.deleting"))]
    assert {os.path.basename(path) for path in left} <= {LEDGER_FILE}


def test_a_repair_gives_the_wanted_ones_their_topic_id_and_an_undo_takes_it_back(own_disks: Disks) -> None:
    before = dict(files(own_disks.log_dirs()))
    where = own_disks.folder / "repair.json"
    repair = ("repair", *own_disks.log_dirs(), "--metadata", own_disks.metadata, "-o", where)
    assert (own_disks.run(*repair).exit_code, where.exists()) == (3, False), "the metadata is of another day"
    proposed = own_disks.run(*repair, "--max-age", "3650d")
    assert proposed.exit_code == 1, proposed.output
    repaired = own_disks.run("repair", "--apply", where)
    assert repaired.exit_code == 0, repaired.output
    wanted = own_disks.expected() + own_disks.healthy()
    cured = Counter({(*key[:3], "OK") if key[3] == "NO_ID" else key: number for key, number in wanted.items()})
    assert verdicts(own_disks.audit(*own_disks.log_dirs(), "--metadata", own_disks.metadata)) == cured
    backups = [path for log_dir in own_disks.log_dirs() for path in log_dir.glob(".logstore_repair.*.json")]
    assert backups
    for backup in backups:
        undone = own_disks.run("repair", "--undo", backup)
        assert undone.exit_code == 0, undone.output
    now = dict(files(own_disks.log_dirs()))
    assert {path: content for path, content in now.items() if "/.l" not in path} == {
        path: content for path, content in before.items() if "/.l" not in path
    }


def test_explain_calls_a_move_abandoned_only_where_the_metadata_do_not_want_it(disks: Disks) -> None:
    expected = {each["topic"]: each["verdict"] for each in disks.manifest["planted"] if each["kind"] == "future"}
    for path in disks.folder.glob("broker-*/disk?/*-future"):
        ran = disks.run("explain", path, "--metadata", disks.metadata, "--format", "json")
        assert ran.exit_code in (0, 1), ran.output
        (judged,) = json.loads(ran.stdout)["verdicts"]
        assert judged["verdict"] == expected.pop(path.name.partition("-")[0])
    assert not expected


def test_explain_names_only_brokers_of_the_disk_and_says_what_preflight_says(disks: Disks) -> None:
    mode = {"zk": "ZooKeeper", "kraft": "KRaft"}[disks.manifest["mode"]]
    (path,) = disks.folder.glob("broker-2/disk?/again-0")
    ran = disks.run("explain", path, "--metadata", disks.metadata, "--format", "json")
    explained = json.loads(ran.stdout)
    starts = {each["kafka"]: each for each in explained["at_start"]}
    (judged,) = explained["verdicts"]
    assert {name.split()[1] for name in starts} == {mode}
    assert judged["verdict"] == "STALE_ID"
    if mode == "KRaft":
        (release,) = starts
        assert disks.manifest["kafka"].startswith(release.split()[0])
        assert starts[release]["action"] == "loaded, and renamed to a stray"
        assert "renames it to -stray" in judged["why"] and "INCONSISTENT_TOPIC_ID" not in judged["why"]
    else:
        assert all("INCONSISTENT_TOPIC_ID (103)" in each["sentence"] for each in starts.values())
        assert "INCONSISTENT_TOPIC_ID" in judged["why"] and "-stray" not in judged["why"]


def test_explain_calls_nothing_ok_beyond_what_it_knows(disks: Disks) -> None:
    (log_dir,) = {path.parent for path in disks.folder.glob("broker-2/disk?/again-0")}
    of_log_dir = json.loads(disks.run("explain", log_dir, "--metadata", disks.metadata, "--format", "json").stdout)
    (judged,) = of_log_dir["verdicts"]
    assert (judged["verdict"], judged["meaning"]) == ("OK", "The log dir is there, and says whose it is.")
    for path in disks.folder.glob("broker-2/disk?/orders-*"):
        with_own_copy = json.loads(disks.run("explain", path, "--format", "json").stdout)["verdicts"]
        if (path.parent / "__cluster_metadata-0").exists():
            assert "this broker's own copy, and nothing since is known" in with_own_copy[0]["why"]
        asked, asked_alone = (
            json.loads(disks.run("explain", path, *others, "--metadata", disks.metadata, "--format", "json").stdout)[
                "verdicts"
            ][0]
            for others in ([word for each in disks.log_dirs("2") for word in ("--log-dir", each)], [])
        )
        assert asked["verdict"] == asked_alone["verdict"]
        if asked["verdict"] == "OK":
            assert asked["why"] == "There is nothing to do."
            assert "as far as this log dir alone tells" in asked_alone["why"]


def test_preflight_takes_the_release_from_the_metadata_of_a_kraft_cluster(disks: Disks) -> None:
    ran = disks.run("preflight", *disks.log_dirs("1"), "--metadata", disks.metadata, "--format", "json")
    release = json.loads(ran.stdout)["kafka"].rpartition(".")[0]
    if disks.manifest["mode"] == "kraft":
        assert disks.manifest["kafka"].startswith(release)
        assert re.search(rf"--kafka {release} is assumed: .* has metadata.version \d+, which came with it", ran.output)
    else:
        assert release == "3.9" and "says of which release the broker is" in ran.output


def plan(disks: Disks) -> dict[str, Any]:
    """Plan for all disks, with all gates open that a fleet of three with this much damage runs into."""
    # All brokers of an archive are stopped, and so fenced.
    gates = (*ANY_AGE, "--max-share", "100%", "--allow", "sole-copy", "--allow", "live-copy")
    where = disks.folder / "plan.json"
    ran = disks.run("plan", *disks.log_dirs(), "--metadata", disks.metadata, *gates, "-o", where)
    assert ran.exit_code == 1, ran.output
    planned: dict[str, Any] = json.loads(where.read_bytes())
    return planned


def with_twin(disks: Disks) -> tuple[Path, Path, str, str]:
    """Stage the stale replicas of a broker, and make one of their topics live on its other disk, as a start does.

    Returns:
        The disk with the staged replica, the other one, the replica, and where it is staged.
    """
    assert disks.run("apply", disks.folder / "plan.json").exit_code == 0
    listed = disks.run("staged", *disks.log_dirs(), "--format", "json")
    (first,) = (each for each in json.loads(listed.stdout)["rows"] if each["topic"] == "again")
    home = Path(first["log_dir"])
    (other,) = {*disks.log_dirs(home.parent.name.removeprefix("broker-"))} - {home}
    name = f"{first['topic']}-{first['partition']}"
    shutil.copytree(
        home / first["location"], other / name, ignore=shutil.ignore_patterns("partition.metadata", "staged.*")
    )
    return home, other, name, first["location"]


def whole_path(home: Path, location: str) -> str:
    """Where a staged replica lies, as a command names it that may be pasted anywhere."""
    return os.path.abspath(home / location)


def test_a_stale_replica_stays_staged_where_its_new_twin_is_live_on_a_disk_that_was_not_given(own_disks: Disks) -> None:
    plan(own_disks)
    home, other, name, location = with_twin(own_disks)
    kept = own_disks.run("restore", home, "--location", location)
    assert f"{name} is live in {other}/{name}, which was not given" in kept.stdout
    assert kept.exit_code == 3
    assert (
        kept.stderr.splitlines()[-1] == f"    logstore restore {home} {other} --location {whole_path(home, location)}"
    )
    pasted = own_disks.run(*shlex.split(kept.stderr.splitlines()[-1])[1:])
    assert (pasted.exit_code, "would be live twice" in pasted.stdout) == (3, True), pasted.output
    assert not (home / name).exists()


def test_a_stale_replica_stays_staged_where_the_other_disk_is_known_and_nowhere_to_be_seen(own_disks: Disks) -> None:
    plan(own_disks)
    home, other, name, location = with_twin(own_disks)
    shutil.move(other, own_disks.folder.parent / "elsewhere" / "deep" / "disk")
    broker = home.parent.name.replace("-", " ")
    kept = own_disks.run("restore", home, "--location", location, "--metadata", own_disks.metadata)
    if own_disks.manifest["mode"] == "kraft":
        known = rf"{broker} registered 2 log dirs|the metadata places {name} of {broker}"
    else:
        known = f"a run here was given 2 log dirs of {broker}"
    assert re.search(known, kept.stdout), kept.output
    again = f"    logstore restore {home} OTHER_LOG_DIR --location {whole_path(home, location)}"
    assert kept.stderr.splitlines()[-1].startswith(again)
    assert (kept.exit_code, (home / name).exists()) == (3, False)
    for journal in home.glob(".logstore_run.*"):
        journal.unlink()
    unknown = own_disks.run("restore", home, "--location", location)
    assert (unknown.exit_code, (home / name).exists()) == (3, False), unknown.output
    assert f"{name} may be live there" in unknown.stdout or f"places {name}" in unknown.stdout
    assert own_disks.run("restore", home, "--location", location, "--without-twin").exit_code == 0
    assert (home / name).is_dir()


LAST_TRANSACTION = {
    "2.8-zk": (0x13F, 0x141, 1_795_201_386_406),
    "3.9-zk": (0x13D, 0x13F, 1_795_201_313_249),
}
"""The snapshot's zxid, and zxid and time of the last transaction in the logs beside it, by a dump of the logs."""


@pytest.mark.parametrize("way", LAST_TRANSACTION)
def test_a_zookeeper_snapshot_speaks_as_of_the_last_transaction_beside_it_and_a_refusal_says_so(
    way: str, tmp_path: Path
) -> None:
    """The last ones are sessions, which touch no node; the brokers' disks were written to before they ended."""
    own_disks = unpacked(way, tmp_path)
    own, last, as_of_ms = LAST_TRANSACTION[way]
    (state,) = load(str(own_disks.metadata))
    assert state.identity.as_of_ms == as_of_ms
    (stale,) = own_disks.folder.glob("broker-2/disk?/again-0")
    for file in stale.iterdir():
        os.utime(file, (as_of_ms / 1000 - 3,) * 2)
    where = own_disks.folder / "plan.json"
    asked = (*own_disks.log_dirs("2"), "--metadata", own_disks.metadata, *ANY_AGE, "--max-share", "100%", "-o", where)
    assert "newer than the metadata" not in own_disks.run("plan", *asked).output
    for file in stale.iterdir():
        os.utime(file, (as_of_ms / 1000 + 1,) * 2)
    refused = own_disks.run("plan", *asked)
    assert refused.exit_code == 3
    assert (
        f"speaks as of {moment(as_of_ms)}, by the time of its last transaction {own:#x} in the log beside it, and up "
        f"to {last:#x} nothing changed that is read here"
    ) in " ".join(refused.output.split())


def test_the_override_that_a_refusal_prints_makes_the_plan_when_it_is_pasted(own_disks: Disks) -> None:
    """Metadata that is years old by now, a replica that was written to since, and one broker's disks alone."""
    (stale,) = own_disks.folder.glob("broker-2/disk?/again-0")
    for file in stale.iterdir():
        os.utime(file)
    where = own_disks.folder / "plan.json"
    refused = own_disks.run("plan", *own_disks.log_dirs("2"), "--metadata", own_disks.metadata, "-o", where)
    assert (refused.exit_code, where.exists()) == (3, False), refused.output
    printed = refused.stderr.splitlines()[-1]
    assert all(f" {option}" in printed for option in ("--max-age", "--allow newer", "--max-share"))
    program, verb, *words = shlex.split(printed)
    pasted = own_disks.run(verb, *words)
    assert (program, verb, pasted.exit_code) == ("logstore", "plan", 1), pasted.output
    actions = json.loads(where.read_text(encoding="utf-8"))["actions"]
    planned = Counter((each["topic"], each["partition"], each["verdict"]) for each in actions)
    assert planned == Counter(key[1:] for key in own_disks.plannable() if key[0] == 2)
