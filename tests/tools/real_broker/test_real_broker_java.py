"""The running of JVMs and the watchdog over them, with a Java that is a shell script."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.real_broker import RELEASES, java
from tools.real_broker.client import until
from tools.real_broker.errors import CommandError
from tools.real_broker.java import JavaServer, run_command
from tools.real_broker.watchdog import Watchdog, kill_group, watch

RELEASE = RELEASES["3.9"]
OBEYS = "trap 'echo bye; exit 143' TERM; echo ready; while :; do sleep 0.02; done"
STUBBORN = "trap '' TERM; echo ready; while :; do sleep 0.02; done"


@pytest.fixture
def watchdog() -> Iterator[Watchdog]:
    """A watchdog that is closed at the end."""
    dog = Watchdog()
    yield dog
    dog.close()


class FakeJava:
    """A folder with ``bin/java``, where the archives of classes lie too."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "bin").mkdir()

    def does(self, script: str) -> None:
        program = self.folder / "bin" / "java"
        program.write_text(f'#!/bin/sh\necho "$@" >>{self.folder}/calls\n{script}\n')
        program.chmod(0o755)

    @property
    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text().splitlines()


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeJava:
    """A Java of our own making, version 17, for jars that are not there."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(java, "java_version", lambda: 17)
    monkeypatch.setattr(java, "class_path", lambda release: "a.jar:b.jar")
    monkeypatch.setattr(java, "release_folder", lambda release: tmp_path)
    return FakeJava(tmp_path)


@pytest.fixture
def server(fake: FakeJava, watchdog: Watchdog) -> Iterator[JavaServer]:
    """A server that is not running; killed at the end."""
    folder = fake.folder
    made = JavaServer(
        RELEASE,
        "broker",
        "kafka.Kafka",
        settings=folder / "server.properties",
        log=folder / "broker-1.log",
        logging=folder / "logging.properties",
        watchdog=watchdog,
    )
    yield made
    made.kill()


def ready(server: JavaServer) -> None:
    until("the server is ready", lambda: server.tail().endswith("ready"))


def test_a_server_runs_its_class_over_its_settings_and_stops_when_asked(fake: FakeJava, server: JavaServer) -> None:
    fake.does(OBEYS)
    assert (server.running, server.pid) == (False, None)
    server.launch()
    ready(server)
    assert server.running
    assert fake.calls[0].endswith(f"-cp a.jar:b.jar kafka.Kafka {fake.folder}/server.properties")
    assert f"-Dlog4j.configuration=file:{fake.folder}/logging.properties" in fake.calls[0]
    assert server.stop() == 143
    assert not server.running
    assert server.tail() == "ready\nbye"


def test_a_server_may_start_again_and_its_log_grows(fake: FakeJava, server: JavaServer) -> None:
    fake.does(OBEYS)
    for _ in range(2):
        server.launch()
        ready(server)
        server.stop()
    assert server.tail() == "ready\nbye\nready\nbye"


def test_a_killed_server_says_nothing_more(fake: FakeJava, server: JavaServer) -> None:
    fake.does(OBEYS)
    server.launch()
    ready(server)
    server.kill()
    assert not server.running
    assert server.tail() == "ready"


def test_a_server_that_does_not_stop_is_killed_and_that_is_said(
    fake: FakeJava, server: JavaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(java, "SECONDS_TO_STOP", 0.1)
    fake.does(STUBBORN)
    server.launch()
    ready(server)
    with pytest.raises(CommandError, match=r"(?s)broker-1 did not stop .* was killed; its log ends:\nready"):
        server.stop()
    assert not server.running


def test_a_paused_server_stands_still_and_goes_on_when_asked(fake: FakeJava, server: JavaServer) -> None:
    fake.does(OBEYS)
    server.launch()
    ready(server)
    pid = server.pid
    assert pid is not None
    server.send(signal.SIGSTOP)
    until("it stands still", lambda: os.WIFSTOPPED(os.waitpid(pid, os.WUNTRACED | os.WNOHANG)[1]))
    server.send(signal.SIGCONT)
    assert server.stop() == 143


def test_to_stop_or_kill_what_does_not_run_does_nothing(server: JavaServer) -> None:
    assert server.stop() == 0
    server.kill()
    server.send(signal.SIGSTOP)
    assert server.tail() == "(no log)"


def test_the_first_server_leaves_its_classes_to_the_next(fake: FakeJava, server: JavaServer) -> None:
    fake.does('for each; do case $each in *AtExit=*) file=${each#*=};; esac; done\n[ -z "$file" ] || echo x >"$file"')
    for _ in range(2):
        server.launch()
        until("it ended", lambda: not server.running)
        server.stop()
    assert (fake.folder / "broker-17.jsa").read_text() == "x\n"
    assert "ArchiveClassesAtExit" in fake.calls[0]
    assert f"-XX:SharedArchiveFile={fake.folder}/broker-17.jsa" in fake.calls[1]


def test_a_killed_server_leaves_no_classes(fake: FakeJava, server: JavaServer) -> None:
    fake.does('for each; do case $each in *AtExit=*) file=${each#*=};; esac; done\necho x >"$file"\n' + OBEYS)
    server.launch()
    ready(server)
    server.kill()
    assert not list(fake.folder.glob("broker-17*"))


def test_a_command_gives_what_it_wrote(fake: FakeJava) -> None:
    fake.does("echo one; echo two >&2")
    assert run_command(RELEASE, "tool", "a.Tool", ["--x"], fake.folder / "l") == "one\ntwo\n"
    assert fake.calls[0].endswith("a.Tool --x")


def test_a_command_that_fails_is_quoted_with_its_arguments(fake: FakeJava) -> None:
    fake.does("echo no such topic; exit 1")
    with pytest.raises(CommandError, match=r"(?s)a\.Tool ended with 1:\nno such topic.*--topic x"):
        run_command(RELEASE, "tool", "a.Tool", ["--topic", "x"], fake.folder / "l")


def test_a_command_that_hangs_is_given_up(fake: FakeJava, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "SECONDS_FOR_A_COMMAND", 0.2)
    fake.does("while :; do :; done")
    with pytest.raises(CommandError, match=r"a\.Tool did not end within"):
        run_command(RELEASE, "tool", "a.Tool", [], fake.folder / "l")


def test_what_was_added_and_not_removed_is_left_running() -> None:
    assert watch(iter(["+1\n", "+2\n", "-1\n", "+3\n"])) == [2, 3]


def test_the_watchdog_kills_what_still_runs_when_its_owner_goes_and_nothing_else() -> None:
    dog = Watchdog()
    left, ended = (subprocess.Popen(["sleep", "600"], process_group=0) for _ in range(2))
    try:
        for child in (left, ended):
            dog.add(child.pid)
        dog.remove(ended.pid)
        dog.close()
        assert left.wait() == -signal.SIGKILL
        assert ended.poll() is None
    finally:
        for child in (left, ended):
            child.kill()
            child.wait()


def test_an_owner_whose_watchdog_ended_first_still_stops_in_order() -> None:
    dog = Watchdog()
    child = subprocess.Popen(["sleep", "600"], process_group=0)
    try:
        dog.add(child.pid)
        dog._process.kill()
        dog._process.wait()
        dog.remove(child.pid)
        dog.close()
    finally:
        child.kill()
        child.wait()


def test_a_group_that_is_gone_is_no_error() -> None:
    child = subprocess.Popen(["true"], process_group=0)
    child.wait()
    kill_group(child.pid)
