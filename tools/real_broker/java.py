"""One JVM as a child: how it is started on a small machine, how it ends, and what it said last.

Every server gets its own process group and is known to the cluster's watchdog, so none outlives its cluster. The
classes that a release's servers load are written to an archive when the first of a kind stops, and mapped by the next
ones, which start in a good half of the time.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shlex
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tools.machine import java_command, java_version
from tools.real_broker.errors import CommandError, FetchError
from tools.real_broker.fetch import class_path, release_folder
from tools.real_broker.releases import Release
from tools.real_broker.watchdog import Watchdog, kill_group

SECONDS_TO_STOP = 600
SECONDS_FOR_A_COMMAND = 600
SMALL = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Djava.awt.headless=true")
LINES_SHOWN = 25
_NO_JAVA = "there is no java on the path; install a Java 17 or newer"

_NUMBERS = itertools.count(1)
"""Tells apart the archives that several JVMs of one kind write at the same time."""


def _command(release: Release, kind: str, heap: str, main_class: str) -> tuple[list[str], Path, Path | None]:
    """The command, its class archive, and where a new archive will appear; None if there is an archive already."""
    java = java_command()
    if java is None:
        raise FetchError(_NO_JAVA)
    jars = class_path(release)
    archive = release_folder(release) / f"{kind}-{java_version()}.jsa"
    fresh = None if archive.is_file() else archive.with_suffix(f".{os.getpid()}.{next(_NUMBERS)}.new")
    sharing = f"-XX:SharedArchiveFile={archive}" if fresh is None else f"-XX:ArchiveClassesAtExit={fresh}"
    options = [*SMALL, f"-Xmx{heap}", sharing, "-Xlog:cds=off", "-Xlog:cds+dynamic=off", "-Xshare:auto"]
    return [java, *options, "-cp", jars, main_class], archive, fresh


class JavaServer:
    """A server in a JVM that may be started, stopped and killed many times; its log grows with each."""

    def __init__(
        self,
        release: Release,
        kind: str,
        main_class: str,
        *,
        settings: Path,
        log: Path,
        logging: Path,
        watchdog: Watchdog,
    ) -> None:
        """Nothing runs yet.

        Servers of one kind load the same classes, and share an archive of them. The main class takes the settings file
        as its one argument.
        """
        self.log = log
        self._release, self._kind, self._main_class = release, kind, main_class
        self._settings, self._logging, self._watchdog = settings, logging, watchdog
        self._process: subprocess.Popen[bytes] | None = None
        self._archive: tuple[Path, Path] | None = None

    @property
    def running(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        """The id of the process; None if it does not run."""
        return self._process.pid if self._process is not None and self.running else None

    def launch(self) -> None:
        """Start the process and return at once."""
        assert not self.running
        command, archive, fresh = _command(self._release, self._kind, "256m", self._main_class)
        self._archive = (fresh, archive) if fresh else None
        logging = f"-D{self._release.logging_option}=file:{self._logging}"
        command[1:1] = [logging]
        with open(self.log, "ab") as log:
            self._process = subprocess.Popen(
                [*command, str(self._settings)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.log.parent,
                process_group=0,
            )
        self._watchdog.add(self._process.pid)

    def ask_to_stop(self) -> None:
        """Send SIGTERM, and do not wait."""
        if self._process is not None and self.running:
            self._process.terminate()

    def stop(self) -> int:
        """Stop it cleanly and give its exit code; one that does not end in time is killed.

        Raises:
            CommandError: if it had to be killed; it is dead by then.
        """
        self.ask_to_stop()
        if self._process is None:
            return 0
        try:
            self._process.wait(SECONDS_TO_STOP)
        except subprocess.TimeoutExpired:
            self.kill()
            raise CommandError(
                f"{self.log.stem} did not stop within {SECONDS_TO_STOP} s and was killed; its log ends:\n{self.tail()}"
            ) from None
        return self._ended()

    def kill(self) -> None:
        """Kill it as a power cut would: nothing is flushed, and no other process is notified."""
        if self._process is not None:
            kill_group(self._process.pid)
            self._process.wait()
            self._ended(killed=True)

    def send(self, number: signal.Signals) -> None:
        """Send a signal, SIGSTOP for one; nothing where it does not run."""
        if self._process is not None and self.running:
            self._process.send_signal(number)

    def tail(self) -> str:
        """The last lines of its log."""
        try:
            text = self.log.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return "(no log)"
        return "\n".join(text.splitlines()[-LINES_SHOWN:])

    def _ended(self, killed: bool = False) -> int:
        assert self._process is not None
        code, group = self._process.returncode, self._process.pid
        self._process = None
        self._watchdog.remove(group)
        if self._archive is not None:
            fresh, archive = self._archive
            with contextlib.suppress(FileNotFoundError):
                # What a kill cut short is no archive.
                fresh.unlink() if killed else fresh.replace(archive)
        return code


def run_command(release: Release, kind: str, main_class: str, arguments: Sequence[str], logging: Path) -> str:
    """Run one of Kafka's own commands to its end and give what it wrote.

    Raises:
        CommandError: if its exit code is not 0, or it takes too long.
    """
    command, archive, fresh = _command(release, kind, "128m", main_class)
    command[1:1] = [f"-D{release.logging_option}=file:{logging}"]
    try:
        done = subprocess.run(
            [*command, *arguments],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=SECONDS_FOR_A_COMMAND,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise CommandError(f"{main_class} did not end within {SECONDS_FOR_A_COMMAND} s; it was killed") from None
    if fresh is not None:
        with contextlib.suppress(FileNotFoundError):
            fresh.replace(archive)
    if done.returncode != 0:
        raise CommandError(
            f"{main_class} ended with {done.returncode}:\n{done.stdout[-4000:]}{done.stderr[-4000:]}\n"
            f"Its arguments were: {' '.join(arguments)}"
        )
    return done.stdout + done.stderr


def write_scripts(release: Release, folder: Path, logging: Path) -> None:
    """Write Kafka's scripts for reassignments, log dirs and formatting into a folder, to be put on the PATH.

    Maven brings jars and no scripts; a release's script does no more than to run one class of these jars.

    Raises:
        FetchError: there is no Java, or the release cannot be fetched.
    """
    java = java_command()
    if java is None:
        raise FetchError(_NO_JAVA)
    package = "org.apache.kafka.tools" if release.tools else "kafka.admin"
    classes = {
        "kafka-reassign-partitions.sh": release.reassign,
        "kafka-log-dirs.sh": f"{package}.LogDirsCommand",
        "kafka-storage.sh": "kafka.tools.StorageTool",
    }
    options = [*SMALL, "-Xmx128m", f"-D{release.logging_option}=file:{logging}", "-cp", class_path(release)]
    for name, main_class in classes.items():
        script = folder / name
        script.write_text(f'#!/bin/sh\nexec {shlex.join((java, *options, main_class))} "$@"\n', encoding="utf-8")
        script.chmod(0o755)
