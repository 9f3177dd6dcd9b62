"""What README and the pages of ``logstore help`` show runs as it stands, except for where its disks are.

Every fenced block names its language, and each language is held to its own rule: Python runs; a session of the console
gives the output that is shown; a command line that can run on the sample fleet runs, and the others are read by the
command line; JSON is what the program gives.
"""

from __future__ import annotations

import glob
import json
import os
import re
import shlex
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from logstore import KafkaError
from logstore.fs.crash_disk import MachineDisks
from logstore.store import LogStore
from reconciler.cli import logstore
from reconciler.cli.guide import RUNBOOKS, TOPICS, read_page
from reconciler.simulator.runs import shipped_scenarios
from tests.crash.images import digest, read_tree
from tests.pages import FENCED, PAGES, blocks, commands, programs
from tools.fleet.sample_fleet import build

ROOT = Path(__file__).resolve().parents[2]
EMBEDDED, SIMULATED = "LogStore.open(list(disks))", "MachineDisks.in_memory("
"""What the programs have that embed the engine, on real disks and in a simulation."""
SHOWN_FLEET = "/srv/fleet"
"""Where the sample fleet lies in what README shows."""


def test_readme_is_for_the_first_ten_minutes() -> None:
    assert PAGES["README"].count("\n") <= 130


def test_every_block_says_its_language_and_every_language_has_its_rule() -> None:
    assert {kind for text in PAGES.values() for kind, _ in FENCED.findall(text)} == {
        *("python", "sh", "console", "json", "text", "toml")
    }
    assert all(text.count("```") == 2 * len(FENCED.findall(text)) for text in PAGES.values())
    unfenced = {page: FENCED.sub("", text) for page, text in PAGES.items()}
    assert not [page for page, text in unfenced.items() if re.search(r"^\n    \S", text, re.MULTILINE)]


def test_every_program_is_run_by_one_of_the_tests() -> None:
    tested = (EMBEDDED, SIMULATED, "Cluster(", "spark_findings(", 'scan("/var/lib/kafka/data")')
    assert [len(programs(each)) for each in tested] == [1] * len(tested)
    assert sum(len(blocks(page, "python")) for page in PAGES) == len(tested)


def test_the_session_of_a_scan_says_what_it_shows(fleet: Path) -> None:
    (program,) = programs('scan("/var/lib/kafka/data")')
    names: dict[str, Any] = {}
    exec(program.replace("/var/lib/kafka/data", f"{fleet}/broker-01/disk-1"), names)
    observed = names["observed"]
    assert (observed.state, observed.identity.node_id) == ("ok", 1)
    assert "name" in observed.rows.column_names


def test_the_program_that_embeds_the_engine_runs(tmp_path: Path) -> None:
    (program,) = programs(EMBEDDED)
    names: dict[str, object] = {}
    exec(program.replace("/disk", f"{tmp_path}/disk"), names)
    orders, another_id, moved_to = names["orders"], names["another_id"], f"{tmp_path}/disk2/logstore"
    with LogStore.open(list(names["disks"])) as store:  # type: ignore[call-overload]
        assert store.get(orders).log_dir == moved_to  # type: ignore[arg-type]
        assert store.fence(orders, another_id) is KafkaError.INCONSISTENT_TOPIC_ID  # type: ignore[arg-type]


def test_the_simulation_that_embeds_the_engine_gives_one_history_and_the_same_bytes_for_one_seed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (program,) = programs(SIMULATED)
    assert program.count("\n") <= 60
    names: dict[str, Any] = {}
    exec(program, names)
    left, close = list[bytes](), MachineDisks.close

    def closed(disks: MachineDisks) -> None:
        left.append(digest(read_tree(disks.root)))
        close(disks)

    monkeypatch.setattr(MachineDisks, "close", closed)
    threads = threading.active_count()
    said = [names["history"](seed) for seed in (0, 0, 1)]
    assert threading.active_count() == threads
    assert said[0] == said[1] != said[2]
    assert left[0] == left[1] != left[2]
    happened = {str(each).partition("; ")[0] for each in said[0]}
    assert {"power cut", "NameTakenError"} < happened
    assert any(each.startswith("deleting/") for each in happened)


def test_settings_that_a_page_shows_are_taken(fleet: Path) -> None:
    (page,) = [page for page in PAGES if blocks(page, "toml")]
    text, _ = blocks(page, "toml")
    file = fleet / "logstore.toml"
    disks = sorted(map(str, fleet.glob("broker-03/disk-?")))
    for number, disk in enumerate(disks, 1):
        text = text.replace(f"/disks/{number}/kafka", disk)
    file.write_text(text.replace("kafka:broker-1:9092,broker-2:9092", f"{fleet}/controller"))
    ran = run(["logstore", "--settings", str(file), "purge", "--dry-run"])
    assert ran.exit_code == 0, ran.output
    assert all(disk in ran.stdout for disk in disks)
    assert {json.loads(line)["level"] for line in ran.stderr.splitlines()} == {"info"}


def test_the_ten_lines_that_run_a_cluster_show_a_stale_replica_staged() -> None:
    # KIP516-5: "stale state"
    (program,) = programs("Cluster(")
    code = [line for line in program.splitlines() if line.strip() and not line.strip().startswith("#")]
    assert len(code) <= 10
    names: dict[str, Any] = {}
    exec(program, names)
    (staged,) = names["staged"]
    assert (str(staged.partition), staged.record.verdict) == ("orders-0", "STALE_ID")


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The sample fleet, with the current directory in it."""
    folder = tmp_path / "fleet"
    build(str(folder), now_ms=time.time_ns() // 1_000_000)
    monkeypatch.chdir(folder)
    return folder


def run(words: list[str]) -> Result:
    """Run a command line, its patterns of paths expanded as a shell has them."""
    expanded = [path for word in words for path in (sorted(glob.glob(word)) or [word])]
    return CliRunner().invoke(logstore, expanded[1:])


def shown(text: str) -> str:
    """The pattern of an output that is shown: the spaces of tables do not count, and ``…`` ends a line that is cut."""
    lines = [re.escape(" ".join(line.rstrip("…").split())) + ".*" * line.endswith("…") for line in text.splitlines()]
    return "\n".join(filter(None, lines))


def said(output: str) -> str:
    lines = (" ".join(line.split()) for line in output.splitlines())
    return "\n".join(re.sub(r"\b\d+ min\b", "60 min", line) for line in lines if line)


def test_a_console_gives_the_output_that_is_shown(fleet: Path) -> None:
    sessions = [text for page in PAGES for text in blocks(page, "console")]
    steps = [step for text in sessions for step in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]]
    assert len(steps) == 4
    for step in steps:
        line, _, output = step.partition("\n")
        assert max(map(len, output.splitlines())) <= 100
        ran = run(shlex.split(line))
        assert ran.exit_code in (0, 1), ran.output
        assert re.fullmatch(shown(output), said(ran.stdout.replace(str(fleet), SHOWN_FLEET))), ran.stdout


def test_a_finding_as_json_has_the_fields_that_are_shown(fleet: Path) -> None:
    (finding,) = [json.loads(text) for page in PAGES for text in blocks(page, "json")]
    ran = run(["logstore", "audit", "broker-07/disk-2", "--metadata", "controller", "--format", "json"])
    (given,) = [each for each in json.loads(ran.stdout)["findings"] if each["name"] == finding["name"]]
    given["log_dir"] = given["log_dir"].replace(str(fleet), SHOWN_FLEET)
    assert {name: given[name] for name in finding} == finding


def test_a_drawing_names_what_is_there() -> None:
    drawn = [line for page in PAGES for text in blocks(page, "text") for line in text.splitlines()]
    (arrow,) = [line for line in drawn if "←" in line]
    assert arrow.split(" ← ") == ["layout", "logstore", "reconciler", "tools"]
    assert all((ROOT / line.split()[0]).is_dir() for line in drawn if line != arrow)


def test_the_page_of_the_source_names_every_package_and_only_what_is_there() -> None:
    named = re.findall(r"^\| `([^`]+)` \|", PAGES["house"], re.MULTILINE)
    assert [place for place in named if not (ROOT / place).exists()] == []
    packages = [
        f"{path.parent.relative_to(ROOT)}/"
        for house in ("logstore", "reconciler")
        for path in (ROOT / house).glob("*/__init__.py")
    ]
    assert [package for package in packages if package not in named] == []


def test_readme_lists_every_topic_and_its_links_lead_somewhere() -> None:
    rows = re.findall(r"^\| \[([a-z-]+)\]\(([^)]+)\) \| (.*) \|$", PAGES["README"], re.MULTILINE)
    assert [(name, title) for name, _, title in rows] == [(name, read_page(name).title) for name in TOPICS]
    assert [to for to in re.findall(r"\]\(([^)]+)\)", PAGES["README"]) if not (ROOT / to).exists()] == []


def leaves(words: list[str]) -> tuple[click.Command, click.Context, list[str]]:
    """The command that words call, its context, and the words that it takes."""
    context = click.Context(logstore, info_name="logstore")
    command: click.Command = logstore
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(context, words[0])
        assert found is not None, words
        command, words = found, words[1:]
        context = click.Context(command, parent=context, info_name=command.name)
    return command, context, words


@pytest.mark.parametrize("page", PAGES)
def test_every_command_that_is_shown_is_one_that_the_command_line_takes(page: str) -> None:
    for line in commands(page):
        words = shlex.split(line)
        if words[0] == "spark-submit":  # the job takes what the audit takes
            words = ["logstore", "audit", *words[words.index("logstore-spark-audit.py") + 1 :]]
        if words[0] == "logstore":
            command, context, rest = leaves(words[1:])
            assert not isinstance(command, click.Group), line
            command.parse_args(context, rest)
        elif words[0].startswith(("tools/", ".ci/")):
            assert os.access(ROOT / words[0], os.X_OK), line
        elif words[:2] == ["python", "-m"]:
            assert (ROOT / f"{words[2].replace('.', '/')}.py").exists() or (ROOT / words[2].replace(".", "/")).is_dir()
        else:
            assert words[0] in ("eval", "python3", "mv"), line
    inline = [each.split() for each in re.findall(r"`logstore ([a-z][^`]*)`", PAGES[page].replace("\n", " "))]
    for words in inline:
        command, _, rest = leaves(words)
        assert command.name != "help" or rest in ([], ["TOPIC"]) or rest[0] in (*TOPICS, *RUNBOOKS), words


NOT_HERE = re.compile(
    r"kafka:|s3:|zk-1:|--cluster-id|/disks/\*/logstore|BACKUP|^logstore (watch|simulate)|^(?!logstore)"
)
"""What needs a cluster, a store, a request or log dirs of ours, or does not end soon: it is read, not run."""


def on_the_fleet(line: str, fleet: Path) -> str:
    """A command line with the places of the sample fleet in place of those that are shown."""
    places = {
        "/disks/*/kafka": "broker-03/disk-?",
        "/var/lib/kafka/metadata/__cluster_metadata-0": "controller",
        "/var/lib/kafka/data/orders-0": "broker-02/disk-1/orders-0",
        "/var/lib/kafka/data": "broker-02/disk-1",
        "/var/lib/logstore/history": f"{fleet}/history",
        "/backup/zookeeper/version-2": "controller",
        "/backup/brokers": "broker-02",
        "/tmp/audit": f"{fleet}/report",
        "$(hostname)": "inventories/host",
        "--topic orders": "--topic legacy-exports",
    }
    for place, here in places.items():
        line = line.replace(place, here)
    return re.sub(r"\b(SRC|METADATA)\b", "controller", line)


RUN_HERE = [page for page in PAGES if page not in RUNBOOKS and not all(map(NOT_HERE.search, commands(page)))]
"""Runbooks are walked before a broker of their own, in the tests of the operator loop."""


def test_the_policy_that_a_page_shows_is_one(fleet: Path) -> None:
    _, text = blocks("operate", "toml")
    (fleet / "policy.toml").write_text(text)
    checked = run(["logstore", "policy", "check", "policy.toml", "--json"])
    assert (checked.exit_code, len(json.loads(checked.stdout)["rules"])) == (0, 5), checked.output


@pytest.mark.parametrize("page", RUN_HERE)
def test_every_command_that_can_run_on_the_sample_fleet_runs(page: str, fleet: Path) -> None:
    (fleet / "inventories").mkdir()
    (fleet / "history").mkdir()
    (fleet / "policy.toml").write_text(blocks("operate", "toml")[1])
    earlier = {  # what the page takes as done
        "README": ["plan broker-03/disk-? --metadata controller -o plan.json", "apply plan.json"],
        "fleet": ["audit broker-03/disk-? --metadata controller --history history"],
    }
    for line in earlier.get(page, ()):
        assert run(shlex.split(f"logstore {line}")).exit_code in (0, 1)
    for line in commands(page):
        if not NOT_HERE.search(line):
            ran = run(shlex.split(on_the_fleet(line, fleet)))
            assert ran.exit_code in (0, 1), (line, ran.output)


def proposal_rows() -> list[tuple[str, str]]:
    """The rows of the table of proposals: of which proposal, and how it is seen."""
    row = re.compile(r"^\| (KIP-\d+|creation in 2\.8) \|[^|]*\|([^|]*)\|", re.MULTILINE)
    return row.findall(PAGES["proposals"])


def test_every_scenario_is_shown_by_a_row_of_the_proposals_and_every_row_names_one_that_is_shipped() -> None:
    scenarios = " ".join(how for _, how in proposal_rows())
    named = set(re.findall(r"`logstore simulate --scenario ([a-z-]+)`", scenarios))
    assert named <= set(shipped_scenarios())
    assert set(shipped_scenarios()) - named == {"failed-disk"}  # of no proposal: what a disk that fails does


@pytest.mark.shared
def test_every_row_of_the_proposals_is_in_its_page_with_how_to_see_it(shared: Path) -> None:
    text = (shared / "KIPS.md").read_text(encoding="utf-8")
    asked = Counter(re.findall(r"^\| ([A-Z0-9]+)-\d+ \|", text, re.MULTILINE))
    names = {"KIP516": "KIP-516", "KIP37": "KIP-37", "KIP694": "KIP-694", "KIP4": "KIP-4", "CREATE": "creation in 2.8"}
    assert Counter(proposal for proposal, _ in proposal_rows()) == {names[each]: rows for each, rows in asked.items()}
    assert all(how.strip() for _, how in proposal_rows())
