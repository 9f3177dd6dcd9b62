"""``logstore scan`` from end to end."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import Result

from layout import meta_properties
from layout.ids import DirectoryId, TopicId
from layout.meta_properties import MetaProperties
from logstore.rows import ROW_SCHEMA, SCHEMA_VERSION, inventory
from tests.patience import PATIENCE_S
from tests.reconciler.cli.conftest import CLUSTER, ORDERS, make_log_dir, shown_space

Run = Callable[..., Result]
NAMES = {".", "orders-0", "orders-1"}


def test_a_table_tells_whose_log_dir_it_is_and_what_lies_in_it(cluster, run: Run) -> None:
    result = run("scan", cluster.log_dirs[0])
    lines = result.stdout.splitlines()
    assert result.exit_code == 0
    assert f"{cluster.log_dirs[0]}, broker 1, cluster cluster-of-the-tests" in lines[0]
    orders = [cluster.log_dir(1) / "orders-0", cluster.log_dir(1) / "orders-1"]
    assert lines[1] == f"  2 live ({' '.join(shown_space(*orders))})"
    assert lines[3].split()[:5] == ["live", "orders-0", "AAECAwQFBgcICQoLDA0ODw", *shown_space(orders[0])]


def test_a_scan_loads_none_of_the_large_parts_of_arrow(cluster) -> None:
    code = (
        "import sys; from reconciler.cli import verbs as cli; cli.do_without_pandas();"
        "cli.logstore(['scan', *sys.argv[1:], '--format', 'arrow', '-o', '/dev/null'], standalone_mode=False);"
        "print([part for part in ('compute', 'acero', 'dataset', 'parquet') if f'pyarrow.{part}' in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code, *cluster.log_dirs], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


@pytest.mark.parametrize("form", ["table", "json", "ndjson", "csv", "arrow", "parquet"])
def test_workers_look_before_arrow_is_imported(cluster, form: str) -> None:
    code = """
import os, sys
from logstore.scan import walk
from reconciler import cli
walk.DIRECTORIES_PER_UNIT = 1
fork = os.fork
def counted_fork():
    print("pyarrow" in sys.modules, file=sys.stderr)
    return fork()
os.fork = counted_fork
cli.logstore(sys.argv[1:], standalone_mode=False)
"""
    output = cluster.folder / "output"
    arguments = ["scan", cluster.log_dirs[0], "--jobs", "1", "--format", form, "-o", str(output)]
    ran = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    assert ran.stderr.splitlines() == ["False"]
    assert output.stat().st_size


def test_a_folder_of_disks_is_scanned_whole(cluster, run: Run) -> None:
    document = json.loads(run("scan", cluster.folder / "disks", "--format", "json").stdout)
    assert document["schema_version"] == SCHEMA_VERSION
    assert [entry["log_dir"] for entry in document["log_dirs"]] == cluster.log_dirs
    assert [entry["rows"] for entry in document["log_dirs"]] == [2, 2]
    assert len(document["rows"]) == 6
    assert set(document["rows"][0]) == set(ROW_SCHEMA.names)


def test_ndjson_and_csv_have_a_line_for_each_row(cluster, run: Run) -> None:
    lines = [json.loads(line) for line in run("scan", cluster.log_dirs[0], "--format", "ndjson").stdout.splitlines()]
    assert {line["name"] for line in lines} == NAMES
    assert {line["schema_version"] for line in lines} == {SCHEMA_VERSION}
    rows = list(csv.DictReader(io.StringIO(run("scan", cluster.log_dirs[0], "--format", "csv").stdout)))
    assert {row["name"] for row in rows} == NAMES


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_an_inventory_is_written_to_a_file_or_a_pipe_and_scanned_again(cluster, run: Run, form: str) -> None:
    path = cluster.folder / "inventory"
    assert run("scan", cluster.log_dirs[0], "--format", form, "-o", path).exit_code == 0
    piped = run("scan", cluster.log_dirs[0], "--format", form, "-o", "-").stdout_bytes
    assert set(inventory.read_inventory(str(path))["name"].to_pylist()) == NAMES
    if form == "parquet":
        assert set(pq.read_table(pa.BufferReader(piped))["name"].to_pylist()) == NAMES
    again = json.loads(run("scan", path, "--format", "json").stdout)
    assert {row["name"] for row in again["rows"]} == NAMES
    assert again["log_dirs"][0]["node_id"] == 1


def test_without_sizes_bytes_are_unknown_and_not_zero(cluster, run: Run) -> None:
    document = json.loads(run("scan", cluster.log_dirs[0], "--no-sizes", "--format", "json").stdout)
    assert {row["bytes"] for row in document["rows"]} == {None}
    assert "2 live\n" in run("scan", cluster.log_dirs[0], "--no-sizes").stdout


def test_a_limit_keeps_what_has_a_problem_and_says_how_many_more(cluster, run: Run) -> None:
    (cluster.log_dir(1) / "lost+found").mkdir()
    text = run("scan", cluster.log_dirs[0], "--limit", 1).stdout
    assert "lost+found" in text
    assert "orders-0" not in text
    assert "… and 2 rows more" in text


def test_names_with_control_characters_are_visible(cluster, run: Run) -> None:
    (cluster.log_dir(1) / "evil\x1b[2J\n-0").mkdir()
    for form in ("table", "csv"):
        text = run("scan", cluster.log_dirs[0], "--format", form).stdout
        assert "\x1b" not in text
        assert "evil\\x1b[2J\\n-0" in text


def test_an_absent_log_dir_among_others_is_partly_failed(cluster, run: Run) -> None:
    result = run("scan", cluster.log_dirs[0], cluster.folder / "absent", "--format", "json")
    assert result.exit_code == 4
    assert "there is no such directory" in result.stderr
    states = [entry["metadata_state"] for entry in json.loads(result.stdout)["log_dirs"]]
    assert sorted(states) == ["absent", "ok"]


@pytest.mark.parametrize("name", ["absent", "file"])
def test_nothing_but_bad_paths_is_a_usage_error(tmp_path: Path, run: Run, name: str) -> None:
    (tmp_path / "file").write_text("hello")
    result = run("scan", tmp_path / name)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1


def test_an_unknown_scheme_in_the_identity_is_reported_and_is_no_bug(cluster, run: Run) -> None:
    with (cluster.log_dir(1) / "meta.properties").open("a") as file:
        file.write("logstore.scheme=spiral\n")
    result = run("scan", cluster.log_dirs[0])
    assert "spiral" in result.stdout + result.stderr
    assert "bug" not in result.stderr


def test_output_into_a_log_dir_is_refused(cluster, run: Run) -> None:
    result = run("scan", cluster.log_dirs[0], "--format", "json", "-o", cluster.log_dir(1) / "out.json")
    assert (result.exit_code, "lies in the log dir" in result.stderr) == (2, True)
    assert not (cluster.log_dir(1) / "out.json").exists()


@pytest.mark.parametrize("name", ['=HYPERLINK("http:⁄⁄x","y")-0', "+SUM(1)-0", "-2+3-0", "@x-0", "\t=1-0", "＝1-0"])
def test_no_cell_of_csv_is_a_formula_to_a_spreadsheet(cluster, run: Run, name: str) -> None:
    (cluster.log_dir(1) / name).mkdir()
    rows = list(csv.DictReader(io.StringIO(run("scan", cluster.log_dirs[0], "--format", "csv").stdout)))
    names = [row["name"] for row in rows]
    assert (r"\t=1-0" if name.startswith("\t") else f"'{name}") in names and "orders-0" in names
    assert not [cell for row in rows for cell in row.values() if cell[:1] in ("=", "+", "-", "@", "＝", "\t", "\r")]
    (line,) = (json.loads(line) for line in run("scan", cluster.log_dirs[0], "--format", "ndjson").stdout.splitlines()
               if json.loads(line)["name"] == name)  # fmt: skip
    assert line["name"] == name, "a program that reads JSON gets the name as it is"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("form", ["table", "json", "csv", "parquet"])
def test_a_full_disk_is_one_sentence(cluster, start, form: str) -> None:
    answer = start("scan", cluster.log_dirs[0], "--format", form, "-o", "/dev/full")
    assert answer.returncode == 4
    assert answer.stderr.startswith("logstore: /dev/full is incomplete")
    assert answer.stderr.count("\n") == 1


def test_a_reader_that_stops_early_ends_it_silently_as_it_ends_other_tools(cluster) -> None:
    for number in range(3000):
        (cluster.log_dir(1) / f"many-{number}").mkdir()
    command = [sys.executable, "-m", "reconciler.cli", "scan", cluster.log_dirs[0], "--format", "ndjson"]
    scanning = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert scanning.stdout is not None
    assert scanning.stderr is not None
    scanning.stdout.readline()
    scanning.stdout.close()
    shown = scanning.stderr.read()
    scanning.stderr.close()
    assert (scanning.wait(PATIENCE_S), shown) == (141, "")


def test_an_interrupt_is_one_sentence(cluster) -> None:
    """Waits until the scan stands at a full pipe, so the interrupt always comes in its middle."""
    for number in range(3000):
        (cluster.log_dir(1) / f"many-{number}").mkdir()
    command = [sys.executable, "-m", "reconciler.cli", "scan", cluster.log_dirs[0], "--format", "ndjson"]
    scanning = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert scanning.stdout is not None
    scanning.stdout.readline()
    while not _blocked(scanning.pid):
        time.sleep(0.01)
    scanning.send_signal(signal.SIGINT)
    _, shown = scanning.communicate(timeout=PATIENCE_S)
    assert scanning.returncode == 130
    assert shown.startswith("logstore: interrupted")
    assert shown.count("\n") == 1


@pytest.mark.parametrize("held", [(), ("lost+found",), ("../empty.deleting/AAECAwQFBgcICQoLDA0ODw_0",)])
@pytest.mark.parametrize("place", [None, "inventories/"])
def test_the_mount_point_of_a_disk_that_is_away_ends_with_4_and_the_others_are_scanned(
    cluster, run: Run, held: tuple[str, ...], place: str | None
) -> None:
    away = cluster.folder / "empty"
    away.mkdir()
    for name in held:
        (away / name).mkdir(parents=True)
    output = () if place is None else ("-o", f"{cluster.folder}/{place}")
    result = run("scan", away, cluster.log_dirs[0], *output)
    assert result.exit_code == 4
    assert f"{away}: there is no meta.properties: nothing says whose log dir this is, or whether its" in result.stderr
    if place is None:
        assert "2 live" in result.stdout
    else:
        (written,) = (cluster.folder / place).rglob("*.parquet")
        assert {str(away), cluster.log_dirs[0]} == set(pq.read_table(written)["log_dir"].to_pylist())


def test_a_log_dir_without_an_identity_is_scanned_where_something_of_a_broker_lies_in_it(cluster, run: Run) -> None:
    (cluster.log_dir(1) / "meta.properties").unlink()
    result = run("scan", cluster.log_dirs[0])
    assert (result.exit_code, "2 live" in result.stdout) == (0, True)


def _blocked(pid: int) -> bool:
    return (
        Path(f"/proc/{pid}/wchan").read_text() == "pipe_write"
        or Path(f"/proc/{pid}/stat").read_text().split()[2] == "S"
    )


@pytest.fixture
def as_nobody(run: Run, tmp_path: Path) -> Iterator[Run]:
    """Runs a command line as someone who may not read what is root's, in this process, whose modules are loaded."""
    if os.geteuid() != 0:
        pytest.skip("only root can become someone who may not read")
    run("scan", tmp_path)
    run("scan", tmp_path / "absent")

    def ran(*args: object) -> Result:
        os.seteuid(65534)
        try:
            return run(*args)
        finally:
            os.seteuid(0)

    yield ran


@pytest.mark.root
def test_a_log_dir_that_may_not_be_read_is_reported(as_nobody: Run) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        log_dir = Path(folder) / "disk"
        log_dir.mkdir(mode=0)
        result = as_nobody("scan", log_dir)
    assert result.exit_code == 4
    assert "Permission denied" in result.stderr
    assert "what lies here is not known" in result.stdout and "nothing lies here" not in result.stdout
    assert "bug" not in result.stderr


@pytest.mark.root
@pytest.mark.parametrize("closed", ["orders-0", "meta.properties"])
def test_a_user_who_may_not_read_what_the_brokers_own_user_may_is_told_so(
    run: Run, as_nobody: Run, closed: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        log_dir = make_log_dir(Path(folder) / "disk", 1, {"orders-0": ORDERS})
        (log_dir / closed).chmod(0)
        assert "this user may not read" not in run("doctor", log_dir).stdout  # loads what nobody may not load
        result = as_nobody("doctor", log_dir)
        assert (result.exit_code, "Permission denied" in result.stderr) == (4, True), result.output
        said = " ".join(result.stdout.split())
        assert f"this user may not read {log_dir / closed}, so nothing is known of what lies there" in said
        assert f"logstore doctor {log_dir}" in said and "--refetch" not in said
        os.chown(log_dir, 65534, 65534)
        own = as_nobody("doctor", log_dir)
        assert "this user may not read" not in own.stdout, "what is closed to the broker's own user is a finding"
        assert own.exit_code == 1


@pytest.mark.root
def test_a_staging_directory_that_may_not_be_read_is_ours_and_is_never_moved_away(run: Run, as_nobody: Run) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        log_dir = make_log_dir(Path(folder) / "disk-1", 1, {"orders-0": ORDERS})
        staged = Path(f"{log_dir}.deleting")
        staged.mkdir(mode=0o700)
        assert "this user may not read" not in run("doctor", log_dir).stdout  # loads what nobody may not load
        run("audit", log_dir)
        looked, audited = as_nobody("doctor", log_dir), as_nobody("audit", log_dir)
        explained = as_nobody("explain", staged)
        os.chown(log_dir, 65534, 65534)
        own = as_nobody("doctor", log_dir)
    for result in (looked, own):
        said = " ".join(result.stdout.split())
        assert result.exit_code == 4, result.output
        assert f"1. this user may not read {staged}, so nothing is known of what lies there: become the broker" in said
        assert "mv " not in said and "2. " not in said, "it may hold the only way back of what was staged"
    assert (audited.exit_code, explained.exit_code) == (4, 4)
    assert "is not Kafka's" not in audited.output + explained.output
    assert f"Next: logstore doctor {log_dir}" in audited.output
    assert "is the staging directory of a log dir, beside it" in explained.stdout


@pytest.mark.root
def test_of_a_log_dir_that_only_this_user_may_not_read_nothing_is_said_of_its_broker(
    run: Run, as_nobody: Run, cluster
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        kept = make_log_dir(Path(folder) / "disk-1", 1, {"orders-0": ORDERS})
        log_dir = make_log_dir(Path(folder) / "disk-2", 1, {"orders-1": ORDERS, "gone-0": TopicId.from_halves(9, 9)})
        own = meta_properties.encode(MetaProperties(1, CLUSTER, 1, DirectoryId.from_halves(78, 1)), "today")
        (log_dir / meta_properties.FILE_NAME).write_bytes(own)
        shutil.copytree(cluster.metadata, f"{folder}/meta")
        disks, asked = (kept, log_dir), ("--metadata", f"{folder}/meta")
        made = run("plan", *disks, *asked, "--max-share", "100%", "-o", f"{folder}/plan.json")
        assert made.exit_code == 1, made.output
        for verb in ("apply", "preflight", "explain"):
            run(verb, "--help")
        log_dir.chmod(0)
        asked_first = as_nobody("preflight", *disks, *asked)
        applied = as_nobody("apply", f"{folder}/plan.json")
        planned = as_nobody("plan", *disks, *asked)
        explained = as_nobody("explain", log_dir / "orders-1")
    assert (asked_first.exit_code, "offline" in asked_first.output) == (4, False), asked_first.output
    assert "ask as the broker's own user, or as root. Next: logstore preflight" in asked_first.stderr
    become = "become the broker's own user, or root"
    assert applied.exit_code == 3
    assert f"this user may not read {log_dir}, so nothing tells whether it is the log dir that it was" in applied.stderr
    assert planned.exit_code == 3
    assert f"next: this user may not read {log_dir}: {become}, and plan again" in planned.stderr
    assert "--allow" not in planned.stderr.splitlines()[-1]
    assert (explained.exit_code, explained.stdout) == (4, "")
    assert f"orders-1 cannot be read: Permission denied: {become}" in explained.stderr
    for result in (applied, planned, explained):
        assert become in result.stderr, result.output


@pytest.mark.root
@pytest.mark.parametrize("closed", ["orders-0", "orders-0/partition.metadata", "orders-0/00000000000000000000.log"])
def test_a_replica_that_only_this_user_may_not_read_ends_no_list_but_with_another_user(
    run: Run, as_nobody: Run, monkeypatch: pytest.MonkeyPatch, closed: str
) -> None:
    # As of a replica that is none of the first.
    monkeypatch.setattr("reconciler.cli.frame.inputs._LOOKED_AT", 0)
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        log_dir = make_log_dir(Path(folder) / "disk", 1, {"orders-0": ORDERS})
        for verb in ("doctor", "audit"):
            run(verb, log_dir)
        run("explain", log_dir / "orders-0")
        (log_dir / closed).chmod(0)
        looked, audited = as_nobody("doctor", log_dir), as_nobody("audit", log_dir)
        explained = as_nobody("explain", log_dir / "orders-0")
    said = " ".join(looked.stdout.split())
    assert f"1. this user may not read {log_dir / closed}, so nothing is known" in said and "2. " not in said
    assert "would go offline" not in said
    if closed.endswith(".log"):
        return  # a scan looks at no segment
    assert (audited.exit_code, explained.exit_code) == (4, 4), audited.output + explained.output
    assert "a broker that may not either takes the log dir offline" in audited.stdout
    assert f"Next: logstore doctor {log_dir}" in audited.stderr
    assert "at start" in explained.stdout and "not known: this user may not read it" in explained.stdout
    assert "logstore repair -" not in explained.output and f"next: logstore doctor {log_dir}" in explained.stdout


@pytest.mark.root
def test_no_verb_says_that_nothing_is_there_where_it_may_not_look(as_nobody: Run) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        log_dir = make_log_dir(Path(folder) / "disk-1", 1, {"orders-0": ORDERS})
        staged = Path(f"{log_dir}.deleting")
        staged.mkdir(mode=0o700)
        listed, restored = as_nobody("staged", log_dir), as_nobody("restore", log_dir, "--all", "--dry-run")
        purged = as_nobody("purge", log_dir, "--dry-run")
        log_dir.chmod(0)
        hidden = as_nobody("staged", log_dir)
        explained = as_nobody("explain", log_dir)
    for result in (listed, restored, purged, hidden):
        assert (result.exit_code, result.stdout) == (4, ""), result.output
        assert "Permission denied" in result.stderr
    assert "nothing was chosen of what could be read" in restored.stderr
    assert (explained.exit_code, explained.stdout) == (4, "")
    assert "disk-1 cannot be read: Permission denied; nothing is known of what lies there" in explained.stderr


@pytest.mark.root
def test_a_path_that_may_not_be_walked_is_reported(as_nobody: Run) -> None:
    with tempfile.TemporaryDirectory() as folder:
        result = as_nobody("scan", Path(folder) / "disk")
    assert (result.exit_code, "disk: Permission denied" in result.stderr) == (2, True)
