"""The wheel: what is in it, what it says of itself, and that it keeps out of the way of packages of others."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import time
import zipfile
from dataclasses import dataclass
from email import message_from_string
from email.message import Message
from importlib.metadata import version
from pathlib import Path

import pytest

from tools.fleet.sample_fleet import build

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("layout", "logstore", "reconciler")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    code = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"
    ran = subprocess.run([sys.executable, "-c", code, folder], cwd=ROOT, capture_output=True, text=True, check=True)
    return folder / ran.stdout.split()[-1]


@pytest.fixture(scope="module")
def names(wheel: Path) -> list[str]:
    return zipfile.ZipFile(wheel).namelist()


def metadata(wheel: Path, file: str) -> str:
    (name,) = [each for each in zipfile.ZipFile(wheel).namelist() if each.endswith(f".dist-info/{file}")]
    return zipfile.ZipFile(wheel).read(name).decode()


@pytest.fixture(scope="module")
def said(wheel: Path) -> Message:
    return message_from_string(metadata(wheel, "METADATA"))


def test_it_holds_three_packages_with_their_types_and_nothing_else_of_the_project(names: list[str]) -> None:
    top = {name.split("/")[0] for name in names}
    assert {name for name in top if not name.startswith("kafka_logstore-")} == set(PACKAGES)
    assert {f"{package}/py.typed" for package in PACKAGES} <= set(names)


def test_it_holds_every_page(names: list[str]) -> None:
    pages = [str(path.relative_to(ROOT)) for path in (ROOT / "reconciler/cli/guide").rglob("*.md")]
    assert pages
    assert set(pages) <= set(names)


def test_it_says_what_it_is_for_whom_and_on_what_it_runs(said: Message) -> None:
    assert (said["Name"], said["Requires-Python"]) == ("kafka-logstore", ">=3.11")
    assert said["Summary"].startswith("Looks after the disks of Kafka-style brokers")
    assert "kafka" in said["Keywords"].split(",")
    classifiers = said.get_all("Classifier") or []
    assert {"Operating System :: POSIX :: Linux", "Typing :: Typed"} <= set(classifiers)
    assert said["Description-Content-Type"] == "text/markdown"
    assert str(said.get_payload()).startswith("# logstore\n")


def test_it_gives_no_licence_which_is_its_owners_to_choose(said: Message) -> None:
    assert not [name for name in said if name.lower().startswith("license")]
    assert not [each for each in said.get_all("Classifier") or [] if each.startswith("License")]


def test_it_brings_its_commands(wheel: Path, names: list[str]) -> None:
    assert metadata(wheel, "entry_points.txt").split("\n")[:3] == [
        *("[console_scripts]", "logstore = reconciler.cli:main", "logstore-spark-audit = reconciler.cli:spark_audit")
    ]
    assert [name for name in names if name.endswith(".data/scripts/logstore-spark-audit.py")]


@dataclass(frozen=True)
class Neighbours:
    """An environment with the wheel and another package ``tools``, and the folder of a program with its ``layout``."""

    python: Path
    program: Path

    @property
    def logstore(self) -> str:
        return str(self.python.parent / "logstore")

    def run(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(words, cwd=self.program, capture_output=True, text=True, check=False, env=variables)


@pytest.fixture(scope="module")
def neighbours(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Neighbours:
    folder = tmp_path_factory.mktemp("neighbours")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "env"], check=True)
    python = folder / "env" / "bin" / "python"
    site = folder / "env" / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
    # What the wheel depends on is that of the tests, so that nothing is fetched.
    (site / "others.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run([*pip, "--no-index", "--no-deps", "--ignore-installed", "--no-compile", wheel], check=True)
    (site / "tools").mkdir()
    (site / "tools" / "__init__.py").write_text("OWNER = 'another package'\n")
    (folder / "program").mkdir()
    (folder / "program" / "layout.py").write_text("OWNER = 'the program'\n")
    return Neighbours(python, folder / "program")


def test_a_package_tools_and_a_module_layout_of_others_are_left_alone(neighbours: Neighbours) -> None:
    ran = neighbours.run(str(neighbours.python), "-c", "import layout, tools; print(layout.OWNER, '/', tools.OWNER)")
    assert (ran.stdout, ran.stderr) == ("the program / another package\n", "")


def test_a_program_has_its_own_tools_beside_what_it_imports_of_ours(neighbours: Neighbours, tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "__init__.py").write_text("OWNER = 'the program'\n")
    imports = "import tools, layout, logstore, reconciler; from logstore import LogStore; from reconciler import Broker"
    (tmp_path / "program.py").write_text(f"{imports}\nprint(tools.OWNER, layout.__file__, logstore.scan('.').state)\n")
    ran = neighbours.run(str(neighbours.python), str(tmp_path / "program.py"))
    owner, where, state = ran.stdout.split()[1:]
    assert (owner, Path(where).is_relative_to(neighbours.python.parents[1]), state) == ("program", True, "missing")


def test_the_command_takes_its_own_layout_in_the_folder_of_a_program_that_has_one(neighbours: Neighbours) -> None:
    shown = neighbours.run(neighbours.logstore, "--version")
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, f"logstore, version {version('kafka-logstore')}\n", "")
    shown = neighbours.run(neighbours.logstore, "help", "exit-codes")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.startswith("Exit codes")


def test_the_installed_command_audits_a_broker_as_readme_shows(neighbours: Neighbours, tmp_path: Path) -> None:
    build(str(tmp_path), now_ms=time.time_ns() // 1_000_000)
    disks = [str(tmp_path / "broker-03" / f"disk-{number}") for number in (1, 2)]
    ran = neighbours.run(neighbours.logstore, "audit", *disks, "--metadata", str(tmp_path / "controller"))
    assert (ran.returncode, ran.stdout.splitlines()[1].split()[:2]) == (1, ["UNKNOWN_TOPIC", "2"]), ran.stderr


def test_a_layout_that_is_put_before_its_own_is_named_and_nothing_else_is_done(neighbours: Neighbours) -> None:
    ran = neighbours.run(neighbours.logstore, "scan", str(neighbours.program), PYTHONPATH=str(neighbours.program))
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"logstore: {neighbours.program}/layout.py is found in place of")
    assert ran.stderr.count("\n") == 1
