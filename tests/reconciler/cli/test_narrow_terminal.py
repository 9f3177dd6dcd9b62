"""What each command prints on a terminal of 80 columns about log dirs whose paths are far longer."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import NamedTuple

import pytest

from layout.ids import TopicId
from reconciler.protocol.json_messages import encode_json
from tests.logstore.changes import fill_store, two_disks
from tests.logstore.engine import identity, opened
from tests.reconciler.cli.conftest import OLD_ORDERS, ORDERS, REPOSITORY, Cluster, make_log_dir, save_metadata
from tests.reconciler.protocol.control_requests import FULL, leader_and_isr, topic

WIDTH = 80
LONG = f"{'rack-of-machines-' * 6}/{'mounted-disk-' * 8}"
HINT = re.compile(rf"^Cut to {WIDTH} columns; nothing is cut with (--json, or with )?\| cat at the end\.$", re.M)
COMMAND = re.compile(r"^ *(\w+: )?logstore |^ {5,}[-/]\S*( |$)")
"""A line to paste, or a part of one, is as long as it is."""

_EACH = """
import json, sys
from reconciler.cli import logstore
for words in json.load(sys.stdin):
    print("===", flush=True)
    try:
        logstore(words, prog_name="logstore")
    except SystemExit:
        pass
    sys.stdout.flush()
"""


class Shown(NamedTuple):
    """A page, and the name of a replica or a log dir that must be whole on it."""

    page: str
    name: str


def shown(commands: list[list[str]]) -> list[str]:
    """What each of the commands writes to a terminal, all of them run by one process."""
    reader, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, WIDTH, 0, 0))
    environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES")} | {
        "TERM": "dumb"
    }
    process = subprocess.Popen(
        [sys.executable, "-c", _EACH], stdin=subprocess.PIPE, stdout=terminal, stderr=subprocess.DEVNULL,
        cwd=REPOSITORY, env=environment,
    )  # fmt: skip
    os.close(terminal)
    assert process.stdin is not None
    process.stdin.write(json.dumps(commands).encode())
    process.stdin.close()
    written = b""
    try:
        while more := os.read(reader, 1 << 16):
            written += more
    except OSError as error:
        assert error.errno == errno.EIO  # the end of a terminal that nobody has open
    finally:
        os.close(reader)
    assert process.wait() == 0
    return written.decode().replace("\r\n", "\n").split("===\n")[1:]


def commands_of(folder: Path) -> dict[str, tuple[list[str], str]]:
    """Each command that has a table, on disks of its own, and the name of a replica or a log dir that it shows."""
    cluster = Cluster(folder)
    make_log_dir(cluster.log_dir(1), 1, {"orders-0": ORDERS, "orders-1": ORDERS, "orders-7": ORDERS})
    make_log_dir(cluster.log_dir(2), 2, {"orders-0": ORDERS, "orders-1": OLD_ORDERS, "broken-7": ORDERS})
    (cluster.log_dir(2) / "broken-7" / "partition.metadata").write_bytes(b"version: 0\n")
    save_metadata(folder / "metadata")
    ours = folder / "ours"
    ours.mkdir()
    paths = two_disks(ours)
    with opened(*paths) as store:
        fill_store(store, "orders")
    request = leader_and_isr(FULL, topic("orders", TopicId(b"another topic 16"), 0, 1))
    (folder / "request.json").write_bytes(encode_json(request, 7))
    one, two, metadata = *cluster.log_dirs, ["--metadata", cluster.metadata]
    plan, history, disks = str(folder / "plan.json"), str(folder / "history"), [str(path) for path in paths]
    opening = [word for gate in ("cluster", "absent") for word in ("--allow", gate)] + ["--max-share", "100%"]
    request_words = [str(folder / "request.json"), *disks, "--cluster-id", str(identity(1).cluster_id)]
    return {
        "audit": (["audit", one, two, *metadata, "--history", history], "orders-1"),
        "scan": (["scan", one, two], "orders-1"),
        "where": (["where", "orders", one, two, *metadata], "/orders-1"),
        "explain": (["explain", f"{two}/orders-1", *metadata], "/orders-1"),
        "doctor": (["doctor", one, two, *metadata], "orders-1"),
        "preflight": (["preflight", two, *metadata], "/broken-7"),
        "repair": (["repair", two, *metadata], "/broken-7"),
        "plan": (["plan", one, two, *metadata, *opening, "-o", plan], "orders-1"),
        "apply": (["apply", plan], "orders-1"),
        "staged": (["staged", one, two], "orders-1"),
        "audit again": (["audit", one, two, *metadata, "--history", history], "orders-1"),
        "diff": (["diff", "previous", "latest", "--history", history], "orders-1"),
        "restore": (["restore", one, two, "--all", "--dry-run"], "as orders-1"),
        "purge": (["purge", one, two, "--dry-run"], "broker-2"),
        "namespace": (["namespace", "create", "org:apache", *disks, "--dry-run"], "org/apache"),
        "convert": (["convert", *disks, "--to", "by-topic-id", "--dry-run"], "orders-0"),
        "reconcile": (["reconcile", *request_words, "--dry-run", "--max-share", "100%"], "orders-0"),
    }


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Shown]:
    """What each command shows, by its name."""
    folder = tmp_path_factory.mktemp("narrow") / LONG
    folder.mkdir(parents=True)
    given = commands_of(folder)
    written = shown([words for words, _ in given.values()])
    return {name: Shown(page, given[name][1]) for name, page in zip(given, written, strict=True)}


def test_no_line_is_wider_than_the_terminal_save_a_command_to_paste(pages: dict[str, Shown]) -> None:
    wide = [
        (verb, line)
        for verb, (page, _) in pages.items()
        for line in page.splitlines()
        if len(line) > WIDTH and not COMMAND.match(line)
    ]
    assert wide == []


def test_every_name_is_whole_and_the_hint_stands_once(pages: dict[str, Shown]) -> None:
    assert [verb for verb, (page, name) in pages.items() if name not in page] == []
    hints = {verb: HINT.findall(page) for verb, (page, _) in pages.items()}
    assert hints == {verb: ["" if verb in ("restore", "purge") else "--json, or with "] for verb in pages}


def test_a_log_dir_stands_once_above_its_lines(pages: dict[str, Shown]) -> None:
    for verb in ("staged", "restore", "purge"):
        heads = re.findall(r"/disks/(broker-\d)", pages[verb].page)
        assert heads == ["broker-1", "broker-2"], verb
    for verb in ("audit", "where", "apply", "diff", "preflight", "reconcile"):
        assert re.search(r"^WHERE: … is[ \n]/.*/(disks|ours)$", pages[verb].page, re.MULTILINE), verb
