"""``tools/setup``: what it says when a machine lacks something, and that it does nothing twice.

Every test runs a copy of the script in a folder with a space in its name, with stand-ins for ``df`` and Python.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

PYTHON = """#!/bin/sh
# A Python of the wanted version whose venv makes links to itself, and whose pip does what the test asks for.
case "$*" in
    --version) echo "Python {version}" ;;
    "-c import sys; "*) exit {too_old} ;;
    "-c import ensurepip, venv") exit {no_venv} ;;
    "-m venv "*) for last; do :; done; rm -rf "$last"; mkdir -p "$last/bin"; cp "$0" "$last/bin/python"
                 echo "VIRTUAL_ENV='$last'" >"$last/bin/activate"; echo venv >>"$CALLS" ;;
    "-m pip --version") ;;
    "-m pip install "*) echo pip >>"$CALLS"; {pip} ;;
esac
"""
NEEDED = (
    "bash",
    "cat",
    "cmp",
    "grep",
    "awk",
    "mktemp",
    "rm",
    "head",
    "tail",
    "dirname",
    "mv",
    "touch",
    "mkdir",
    "cp",
    "sh",
)


class Machine:
    """A checkout and a PATH with nothing on it but what the test puts there."""

    def __init__(self, folder: Path) -> None:
        self.checkout = folder / "a check out"
        (self.checkout / "tools").mkdir(parents=True)
        for name in ("tools/setup", "tools/constraints.txt", "pyproject.toml"):
            shutil.copy2(ROOT / name, self.checkout / name)
        self.bin = folder / "bin"
        self.bin.mkdir()
        for name in NEEDED:
            (self.bin / name).symlink_to(shutil.which(name) or name)
        self.command("df", f"#!/bin/sh\necho Filesystem\necho /dev/x 9 9 {9 << 30} 1% /\n")
        self.calls = folder / "calls"

    def command(self, name: str, text: str) -> None:
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def python(self, name: str = "python3", version: str = "3.12.1", pip: str = ":", *, venv: bool = True) -> None:
        minor = int(version.split(".")[1])
        self.command(name, PYTHON.format(version=version, too_old=int(minor < 11), no_venv=int(not venv), pip=pip))

    def setup(self) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": str(self.bin), "CALLS": str(self.calls), "TMPDIR": str(self.bin.parent)}
        return subprocess.run(
            [str(self.checkout / "tools/setup")], env=environment, cwd="/", capture_output=True, text=True, check=False
        )

    def called(self) -> list[str]:
        found = self.calls.read_text().split() if self.calls.exists() else []
        self.calls.unlink(missing_ok=True)
        return found


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_second_run_does_nothing(machine: Machine) -> None:
    machine.python()
    assert machine.setup().returncode == 0
    assert machine.called() == ["venv", "pip"]
    assert "complete" in machine.setup().stderr
    assert machine.called() == []


def test_a_change_of_what_is_needed_installs_into_the_environment_that_is_there(machine: Machine) -> None:
    machine.python()
    machine.setup()
    machine.called()
    with (machine.checkout / "pyproject.toml").open("a") as file:
        file.write("# more\n")
    assert machine.setup().returncode == 0
    assert machine.called() == ["pip"]


def test_an_interrupted_set_up_is_made_anew(machine: Machine) -> None:
    machine.python(pip="kill -9 $PPID")
    assert machine.setup().returncode != 0
    machine.called()
    machine.python()
    assert machine.setup().returncode == 0
    assert machine.called() == ["venv", "pip"]


def test_a_link_to_the_environment_of_another_checkout_is_refused_and_that_one_stays(
    machine: Machine, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    (other / "bin").mkdir(parents=True)
    (other / "bin/activate").write_text(f"VIRTUAL_ENV={other}\n")
    (machine.checkout / ".venv").symlink_to(other)
    machine.python()
    done = machine.setup()
    assert done.returncode == 1
    assert f".venv is a link to {other}, an environment of another checkout" in done.stderr
    assert (machine.called(), (other / "bin/activate").exists()) == ([], True)


def test_an_environment_of_a_checkout_that_was_moved_is_made_anew(machine: Machine) -> None:
    machine.python()
    machine.setup()
    machine.called()
    machine.checkout = machine.checkout.rename(machine.checkout.with_name("elsewhere"))
    assert machine.setup().returncode == 0
    assert machine.called() == ["venv", "pip"]


def test_a_python_that_is_too_old_is_named(machine: Machine) -> None:
    machine.python(version="3.9.2")
    done = machine.setup()
    assert done.returncode == 1
    assert "Python 3.11 or newer is needed; found Python 3.9.2 (python3)" in done.stderr
    assert machine.called() == []


def test_a_newer_python_beside_an_old_one_is_taken(machine: Machine) -> None:
    machine.python(version="3.9.2")
    machine.python("python3.13", version="3.13.0")
    done = machine.setup()
    assert done.returncode == 0
    assert "Python 3.13.0" in done.stderr


def test_a_machine_without_any_python_learns_so(machine: Machine) -> None:
    assert "found no Python at all" in machine.setup().stderr


def test_a_python_without_venv_is_answered_with_what_to_install(machine: Machine) -> None:
    machine.python(venv=False)
    done = machine.setup()
    assert done.returncode == 1
    assert "python3-venv" in done.stderr


def test_a_disk_without_room_is_refused_before_anything_is_made(machine: Machine) -> None:
    machine.python()
    machine.command("df", "#!/bin/sh\necho Filesystem\necho /dev/x 9 9 512000 99% /\n")
    done = machine.setup()
    assert done.returncode == 1
    assert f"500 MB are free at {machine.checkout}; 2048 MB are needed" in done.stderr
    assert machine.called() == []


@pytest.mark.parametrize(
    ("pip_says", "sentence"),
    [
        ("Failed to establish a new connection", "the package index cannot be reached"),
        ("OSError: No space left on device", "the disk is full"),
        ("ResolutionImpossible", "the packages could not be installed; the last lines were"),
    ],
)
def test_a_failed_install_says_why_and_shows_the_last_lines(machine: Machine, pip_says: str, sentence: str) -> None:
    machine.python(pip=f"echo '{pip_says}'; exit 1")
    done = machine.setup()
    assert done.returncode == 1
    assert sentence in done.stderr
    assert pip_says in done.stderr
    assert not os.path.exists(machine.checkout / ".venv/complete")


def test_uv_is_tried_first_and_pip_when_it_fails(machine: Machine) -> None:
    machine.python()
    machine.command("uv", '#!/bin/sh\necho uv >>"$CALLS"\nexit 1\n')
    done = machine.setup()
    assert done.returncode == 0
    assert machine.called() == ["uv", "venv", "pip"]
    assert "uv could not do it" in done.stderr
