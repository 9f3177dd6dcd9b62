"""What ``tools/test`` leaves out and why, and the plugin that lets nothing be left out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools import machine, run_tests

ROOT = Path(__file__).resolve().parents[2]


def fake_java(folder: Path, answer: str, code: int = 0) -> None:
    (folder / "bin").mkdir(exist_ok=True)
    java = folder / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho '{answer}' >&2\nexit {code}\n")
    java.chmod(0o755)


@pytest.mark.parametrize(
    ("answer", "version"),
    [
        ('openjdk version "17.0.9" 2023-10-17', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_392"', 8),
        ("no runtime present", None),
    ],
)
def test_the_version_of_java_is_read_from_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str, version: int | None
) -> None:
    fake_java(tmp_path, answer)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert machine.java_version() == version


def test_a_java_that_fails_is_no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path, 'openjdk version "17.0.9"', code=1)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert machine.why_no_java() == "no Java was found; 17 or newer is needed"


def test_an_old_java_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path, 'java version "1.8.0_392"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert machine.why_no_java() == "Java 8 was found; 17 or newer is needed"


def test_without_java_the_suites_of_the_jvm_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert {"spark", "zookeeper", "broker", "java"} <= set(run_tests.left_out())
    assert "no Java was found" in run_tests.left_out()["spark"]


def test_without_the_shared_folder_its_tests_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGSTORE_SHARED", str(tmp_path / "none"))
    assert {"shared", "corpus"} <= set(run_tests.left_out())
    (tmp_path / "kafka" / "golden").mkdir(parents=True)
    monkeypatch.setenv("LOGSTORE_SHARED", str(tmp_path))
    assert not {"shared", "corpus"} & set(run_tests.left_out())


def test_without_chromium_the_tests_in_a_browser_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run_tests.left_out()["browser"] == "no Chromium was found; Debian's package is chromium"
    (tmp_path / "chromium").write_text("")
    (tmp_path / "chromium").chmod(0o755)
    assert "browser" not in run_tests.left_out()


def test_the_suites_of_the_jvm_run_apart_and_only_brokers_and_browser_on_several_processes() -> None:
    first, second, third = run_tests.rounds(["root"], "slow", ["-n", "2"])
    alone = "not (spark or zookeeper or broker or java or browser)"
    assert first == ["-m", f"{alone} and not root and (slow)", "--dist", "worksteal", "-n", "2"]
    assert second == ["-m", "(spark or zookeeper or java) and not (broker or browser) and not root and (slow)"]
    assert third == ["-m", "(broker or browser) and not root and (slow)", "--dist", "loadfile", "-n", "2"]


def test_a_round_of_which_all_is_left_out_is_not_started() -> None:
    assert len(run_tests.rounds(["broker", "browser"], "", [])) == 2
    assert len(run_tests.rounds(["broker"], "", [])) == 3
    assert len(run_tests.rounds(["spark", "zookeeper", "broker", "java", "browser"], "", [])) == 1


def test_the_folders_of_tests_lie_in_memory_where_there_is_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_tests, "memory_folder", lambda _: str(tmp_path))
    with run_tests.folders_in_memory(["-x"]) as (argument,):
        folder = Path(argument.removeprefix("--basetemp="))
        assert folder.parent.parent == tmp_path
        assert folder.parent.is_dir()
    assert not folder.parent.exists()
    with run_tests.folders_in_memory(["--basetemp=elsewhere"]) as arguments:
        assert arguments == []
    monkeypatch.setattr(run_tests, "memory_folder", machine.memory_folder)
    monkeypatch.setattr(run_tests, "IN_MEMORY_FROM", 1 << 60)
    with run_tests.folders_in_memory([]) as arguments:
        assert arguments == []


def test_a_folder_that_is_not_in_memory_is_not_taken_for_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_IN_MEMORY", str(tmp_path))
    assert machine.memory_folder(0) is None
    monkeypatch.setattr(machine, "_IN_MEMORY", str(tmp_path / "none"))
    assert machine.memory_folder(0) is None


def test_what_is_missing_fails_a_run_that_lets_nothing_be_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LOGSTORE_SHARED", str(tmp_path / "none"))
    monkeypatch.setenv(run_tests.NO_SKIPS, "1")
    assert run_tests.main([]) == 1
    assert "corpus" in capsys.readouterr().err


SUITE = """
import pytest

{top}

def test_that_passes(): pass

def test_that_is_skipped(): {body}

@pytest.mark.xfail(strict=True)
def test_that_is_expected_to_fail(): assert False
"""


@pytest.mark.parametrize("processes", ["0", "2"])
@pytest.mark.parametrize(
    ("top", "body", "code"),
    [
        ("", "pass", 0),
        ("", "pytest.skip('no such thing')", 1),
        ("pytest.importorskip('no_such_module')", "pass", 1),
        ("pytestmark = pytest.mark.root", "pytest.skip('no mounts in this container')", 0),
    ],
)
def test_a_skip_fails_the_run_and_an_expected_failure_does_not(
    tmp_path: Path, processes: str, top: str, body: str, code: int
) -> None:
    (tmp_path / "test_suite.py").write_text(SUITE.format(top=top, body=body))
    (tmp_path / "test_other.py").write_text("def test_that_passes(): pass")
    plugins = [word for name in ("tools.no_skips", "no:cacheprovider", "xdist") for word in ("-p", name)]
    command = [sys.executable, "-m", "pytest", *plugins, "-n", processes, "-c", "/dev/null", "--rootdir", str(tmp_path)]
    # Else pytest would remove the folders of runs before this one, and this would wait for that.
    command.append(f"--basetemp={tmp_path}/folders")
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        [*command, str(tmp_path)], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert ("counts as a failure" in done.stdout) == (code == 1)


def test_a_test_that_never_ends_fails_and_shows_where_it_stands(tmp_path: Path) -> None:
    (tmp_path / "test_suite.py").write_text(
        "import time\n\ndef test_that_passes(): pass\n\ndef test_that_hangs(): time.sleep(10_000)\n"
    )
    command = [sys.executable, "-m", "pytest", *run_tests.ending(1), "-p", "xdist", "-n", "2", "-c", "/dev/null"]
    places = ["-p", "no:cacheprovider", "--rootdir", str(tmp_path), f"--basetemp={tmp_path}/folders", str(tmp_path)]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run([*command, *places], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "crashed while running 'test_suite.py::test_that_hangs'" in done.stdout
    assert "1 failed, 1 passed" in done.stdout
    assert "Timeout (0:00:01)!" in done.stderr and "in test_that_hangs" in done.stderr
