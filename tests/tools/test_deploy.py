"""What ``tools/deploy`` gives to systemd, cron and Kubernetes is started as they would start it, on small disks."""

from __future__ import annotations

import configparser
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from string import Template
from typing import Any

import pytest
import yaml

from layout.topic import TopicPartition
from logstore import LogDir
from logstore.staging import Candidate, stage
from tests.patience import PATIENCE_S
from tests.reconciler.cli.conftest import ORDERS, REPOSITORY, Cluster, make_log_dir, save_metadata
from tools.real_broker.client import until

DEPLOY = REPOSITORY / "tools" / "deploy"
SYSTEMD = DEPLOY / "systemd"
INSTALLED = "/usr/local/bin/logstore"
COMMAND = str(Path(sys.executable).with_name("logstore"))
DUE_MS = 1_000_000


@pytest.fixture
def disks(tmp_path: Path) -> Cluster:
    """Broker 1 wants ``orders-0``, and has staged a replica of an older ``orders`` long ago."""
    made = Cluster(tmp_path)
    old = make_log_dir(made.log_dir(1), 1, {"orders-0": ORDERS, "gone-0": ORDERS})
    with LogDir.open(str(old)) as opened:
        stage(opened, [Candidate("gone-0", TopicPartition("gone", 0), ORDERS, "NOT_ASSIGNED", "moved away", 0)], DUE_MS)
    save_metadata(tmp_path / "metadata")
    return made


@pytest.fixture
def settings(disks: Cluster, tmp_path: Path) -> Path:
    """``/etc/default/logstore`` of that broker: the file of the repository with other values."""
    values = {"LOG_DIRS": f'"{disks.log_dir(1)}"', "METADATA": disks.metadata, "RATE": "100M"}
    lines = (DEPLOY / "logstore.env").read_text().splitlines()
    file = tmp_path / "logstore.env"
    named = [line.partition("=")[0] for line in lines if not line.startswith("#")]
    assert named == list(values)
    file.write_text("".join(f"{name}={values[name]}\n" for name in named))
    return file


def staged(disks: Cluster) -> list[Path]:
    return list(disks.log_dir(1).with_name("broker-1.deleting").glob(f"{ORDERS}_*"))


def unit(name: str) -> configparser.ConfigParser:
    parsed = configparser.ConfigParser(interpolation=None, strict=False)
    parsed.optionxform = str  # type: ignore[assignment, method-assign]
    parsed.read_string((SYSTEMD / name).read_text())
    return parsed


def started_by(name: str, settings: Path) -> list[str]:
    """The command line of a service, as systemd makes it: ``$NAME`` is split into words, ``${NAME}`` is one."""
    service = unit(name)["Service"]
    assert service["EnvironmentFile"] == "/etc/default/logstore"
    given = dict(line.split("=", 1) for line in settings.read_text().splitlines())
    values = {key: value.strip('"') for key, value in given.items()}
    words: list[str] = []
    for word in service["ExecStart"].split():
        if word.startswith("$") and not word.startswith("${"):
            words += values[word[1:]].split()
        else:
            words.append(Template(word).substitute(values))
    assert words[0] == INSTALLED
    return [COMMAND, *words[1:]]


def finish(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False, **options)


@pytest.mark.systemd
def test_systemd_takes_the_units(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    for file in SYSTEMD.iterdir():
        (tmp_path / file.name).write_text(file.read_text().replace(INSTALLED, sys.executable))
    checked = finish(["systemd-analyze", "verify", *map(str, sorted(tmp_path.iterdir()))])
    assert (checked.returncode, checked.stderr) == (0, "")


def test_the_purge_of_the_timer_deletes_what_is_due_and_nothing_else(disks: Cluster, settings: Path) -> None:
    assert unit("logstore-purge.timer")["Timer"]["OnCalendar"] == "*:0/10"
    assert len(staged(disks)) == 1
    done = finish(started_by("logstore-purge.service", settings))
    assert done.returncode == 0, done.stderr
    assert staged(disks) == []
    assert (disks.log_dir(1) / "orders-0").is_dir()


def test_the_watch_of_the_service_tells_what_is_not_ok_until_it_is_ended(
    disks: Cluster, settings: Path, tmp_path: Path
) -> None:
    with open(tmp_path / "told", "wb") as told:
        service = subprocess.Popen(started_by("logstore-watch.service", settings), stdout=told, stderr=told)
    try:
        until("it has told", lambda: b'"MISSING"' in (tmp_path / "told").read_bytes(), PATIENCE_S)
    finally:
        service.send_signal(signal.SIGTERM)
    assert service.wait(PATIENCE_S) in (0, 130)


def test_the_line_for_cron_deletes_what_is_due(disks: Cluster, settings: Path, tmp_path: Path) -> None:
    lines = [line for line in (DEPLOY / "cron").read_text().splitlines() if not line.startswith("#")]
    *names, job = lines
    environment = dict(line.split("=", 1) for line in names)
    minute, *others, user, command = job.split(None, 6)
    assert (minute, others, user) == ("*/10", ["*"] * 4, "kafka")
    environment["PATH"] = f"{Path(COMMAND).parent}:{environment['PATH']}"
    job = command.replace("/etc/default/logstore", str(settings))
    done = finish([environment["SHELL"], "-c", job], env={**environment, "HOME": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    assert staged(disks) == []


def containers(name: str) -> Mapping[str, Any]:
    """The containers of a Kubernetes object in ``tools/deploy/kubernetes``, by name."""
    spec = next(yaml.safe_load_all((DEPLOY / "kubernetes" / name).read_text()))["spec"]
    pod = spec.get("jobTemplate", {}).get("spec", spec)["template"]["spec"]
    return {each["name"]: each for each in pod["containers"]}


def in_a_container(container: Mapping[str, Any], given: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """Its command line and environment: the kubelet puts values in for ``$(NAME)``."""
    values = {each["name"]: given[each["name"]] for each in container["env"]}
    command = [str(word) for word in container["command"]]
    for name, value in values.items():
        command = [word.replace(f"$({name})", value) for word in command]
    return command, {**os.environ, **values, "PATH": f"{Path(COMMAND).parent}:{os.environ['PATH']}"}


def test_the_containers_of_kubernetes_watch_and_purge_and_audit(disks: Cluster, tmp_path: Path) -> None:
    given = {
        "LOG_DIR": str(disks.log_dir(1)),
        "METADATA": disks.metadata,
        "RATE": "100M",
        "INVENTORIES": f"{tmp_path}/inventories/",
        "KEPT": str(tmp_path / "kept"),
    }
    beside = containers("sidecar.yaml")
    command, environment = in_a_container(beside["logstore-watch"], given)
    watched = finish([*command, "--for", "0"], env=environment)
    assert (watched.returncode, '"MISSING"' in watched.stdout) == (0, True), watched.stderr

    command, environment = in_a_container(beside["logstore-every-hour"], given)
    hourly = subprocess.Popen(command, env=environment, start_new_session=True)
    until("what is due is gone", lambda: staged(disks) == [], PATIENCE_S)
    os.killpg(hourly.pid, signal.SIGTERM)
    assert hourly.wait(PATIENCE_S) in (0, 143, 130)  # the last: the purge was about to end, and was interrupted
    assert len(list((tmp_path / "inventories").rglob("*.parquet"))) == 1

    (tmp_path / "kept").mkdir()
    command, environment = in_a_container(containers("audit.yaml")["audit"], given)
    audited = finish(command, env=environment)
    assert audited.returncode == 1, audited.stderr
    assert "MISSING" in audited.stdout
    assert (tmp_path / "kept" / "report" / "report.html").is_file()
    assert list((tmp_path / "kept" / "history").rglob("*.parquet"))


OTHER_PYTHON = """#!{python}
import runpy, sys, sysconfig
sysconfig.get_platform = lambda: "linux-other"
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""

OneFile = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def one_file(tmp_path_factory: pytest.TempPathFactory) -> OneFile:
    """Runs the one executable file in a bare environment, from a folder that has nothing of the repository."""
    folder = tmp_path_factory.mktemp("one file")
    made = finish([str(REPOSITORY / "tools" / "onefile"), str(folder / "logstore")])
    if "No matching distribution" in made.stderr or "connection" in made.stderr.lower():
        pytest.skip("the package index cannot be reached")
    assert made.returncode == 0, made.stderr

    plain = folder / "plain"
    plain.mkdir()
    (plain / "python3").symlink_to(os.path.realpath(sys.executable))

    def run(*words: str, first_on_path: Path = plain) -> subprocess.CompletedProcess[str]:
        bare = {"PATH": f"{first_on_path}:/usr/bin:/bin", "HOME": str(folder), "SHIV_ROOT": str(folder / "unpacked")}
        return finish([str(folder / "logstore"), *words], env=bare, cwd=folder)

    return run


def test_one_file_does_what_the_command_does_without_the_packages_of_this_environment(
    one_file: OneFile, disks: Cluster
) -> None:
    words = ("audit", str(disks.log_dir(1)), "--metadata", disks.metadata, "--format", "ndjson")
    told, expected = one_file(*words), finish([COMMAND, *words])
    assert (told.returncode, told.stdout) == (expected.returncode, expected.stdout), told.stderr
    spark = one_file(*words, "--spark")
    assert (spark.returncode, "or leave out --spark" in spark.stderr) == (3, True), spark.stderr


def test_one_file_says_which_python_it_was_made_for_where_another_starts_it(one_file: OneFile, tmp_path: Path) -> None:
    (tmp_path / "python3").write_text(OTHER_PYTHON.format(python=sys.executable))
    (tmp_path / "python3").chmod(0o755)
    told = one_file("--version", first_on_path=tmp_path)
    version = "{}.{}".format(*sys.version_info[:2])
    assert told.returncode == 1
    assert told.stderr.startswith(f"logstore: this file was made for Python {version} on linux-")
    assert f"and this is Python {version} on linux-other: start it as 'python{version} " in told.stderr
