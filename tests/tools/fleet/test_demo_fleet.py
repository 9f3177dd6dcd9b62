"""The demo: both engines find what was planted, and it says so; when they do not, it says that."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from reconciler.verdicts import BENIGN, Verdict
from tools.fleet import demo_fleet
from tools.fleet.sample_fleet import TRUTH_FILE, load_truth

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "no java"))


@pytest.mark.usefixtures("no_java")
def test_without_java_the_embedded_engine_finds_what_was_planted(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "de mo"
    assert demo_fleet.main([str(folder)]) == 0
    printed = capfd.readouterr().out
    truth = load_truth(str(folder / "fleet"))
    to_act = sum(Verdict(planted.verdict) not in BENIGN for planted in truth.findings)
    counted = f"{to_act} findings to act on, and {len(truth.findings) - to_act} that ask nobody to act"
    assert f"{counted} are planted" in printed
    assert f"embedded: {counted}, and {len(truth.fleet)} of the fleet as a whole, as planted" in printed
    assert f"{to_act} findings; {len(truth.findings) - to_act} more" in printed
    assert "spark: left out, because no Java was found" in printed
    assert "lost+found" in printed
    cure = printed.split("spark: left out")[1]
    assert [line.split()[2] for line in cure.splitlines() if line.startswith("$ ")] == ["plan", "apply", "audit"]
    assert "cure: broker-03 is clean" in cure
    assert printed.count("  " + demo_fleet.LOGSTORE) == 5
    assert printed.split("Try next:")[1].split()[1] == "doctor"
    for name in (demo_fleet.FINDINGS, demo_fleet.SUMMARY, demo_fleet.REPORT):
        assert (folder / "embedded" / name).exists()


@pytest.mark.usefixtures("no_java")
def test_a_finding_that_was_not_planted_fails_the_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    real_build = demo_fleet.build

    def build_and_spoil(folder: str, *, now_ms: int) -> object:
        truth = real_build(folder, now_ms=now_ms)
        (Path(folder) / "broker-03/disk-1/foreign").mkdir()
        return truth

    monkeypatch.setattr(demo_fleet, "build", build_and_spoil)
    assert demo_fleet.main([str(tmp_path / "demo")]) == 1
    printed = capfd.readouterr().out
    assert "NOT as planted: 1 differences" in printed
    assert "found and not planted: FOREIGN broker-03/disk-1 foreign" in printed


@pytest.mark.usefixtures("no_java")
def test_an_audit_that_fails_fails_the_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "logstore"
    broken.write_text("#!/bin/sh\nexit 4\n")
    broken.chmod(0o755)
    monkeypatch.setattr(demo_fleet, "LOGSTORE", str(broken))
    assert demo_fleet.main([str(tmp_path / "demo")]) == 1
    assert "embedded: the audit ended with exit code 4" in capfd.readouterr().out


@pytest.mark.usefixtures("no_java")
def test_a_cure_that_does_not_lead_to_a_clean_audit_fails_the_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    logstore = tmp_path / "logstore"
    # Its plan is as the command makes it, and its application does nothing.
    logstore.write_text(f'#!/bin/sh\n[ "$1" = apply ] && exit 3\nexec "{demo_fleet.LOGSTORE}" "$@"\n')
    logstore.chmod(0o755)
    monkeypatch.setattr(demo_fleet, "LOGSTORE", str(logstore))
    assert demo_fleet.main([str(tmp_path / "demo")]) == 1
    assert "cure: apply ended with exit code 3, and 0 was expected" in capfd.readouterr().out


def test_a_folder_that_is_in_use_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "fleet").mkdir()
    (tmp_path / "fleet" / TRUTH_FILE).write_text(json.dumps({}))
    assert demo_fleet.main([str(tmp_path)]) == 2
    assert "not empty" in capsys.readouterr().err


@pytest.mark.spark
def test_both_engines_find_what_was_planted(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tools.fleet.demo_fleet", str(tmp_path / "demo")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [line.split(":")[0] for line in done.stdout.splitlines() if "as planted" in line] == ["embedded", "spark"]
