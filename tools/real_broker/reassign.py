"""Moves replicas between brokers and between the disks of one, by Kafka's own ``kafka-reassign-partitions``."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.real_broker.client import until
from tools.real_broker.java import run_command
from tools.real_broker.releases import Release

_DONE = re.compile(r"^Reassignment of \S+ .*complete", re.MULTILINE)
"""Of each partition that is where it should be; the words after it differ between releases."""


def as_json(topic: str, replicas: Mapping[int, Sequence[int]], log_dirs: Mapping[int, Sequence[str]]) -> str:
    """The command's input; ``log_dirs`` has, for a partition, one log dir for each of its brokers, or ``any``."""
    partitions: list[dict[str, object]] = []
    for number, brokers in replicas.items():
        entry: dict[str, object] = {"topic": topic, "partition": number, "replicas": list(brokers)}
        if number in log_dirs:
            entry["log_dirs"] = list(log_dirs[number])
        partitions.append(entry)
    return json.dumps({"version": 1, "partitions": partitions})


class Reassignment:
    """One reassignment: its input file and the command."""

    def __init__(self, release: Release, bootstrap: str, folder: Path, text: str) -> None:
        """Write the input file, a text of :func:`as_json`, into a folder that holds ``quiet.properties``."""
        self._release, self._bootstrap, self._folder = release, bootstrap, folder
        self._file = folder / "reassignment.json"
        self._file.write_text(text, encoding="utf-8")

    def execute(self, throttle: int | None = None) -> str:
        """Start it, and give what the command wrote.

        The throttle is bytes each second, between brokers and between log dirs.

        Raises:
            CommandError: if the command refuses.
        """
        limits = (
            []
            if throttle is None
            else ["--throttle", str(throttle), "--replica-alter-log-dirs-throttle", str(throttle)]
        )
        return self._run("--execute", "--additional", *limits)

    def verify(self) -> bool:
        """Whether the reassignment is done; if so, the command removes its throttles.

        Raises:
            CommandError: if the command fails.
        """
        text = self._run("--verify")
        if not _DONE.search(text):
            return False
        return "in progress" not in text

    def cancel(self) -> str:
        """Take back what is not done yet.

        Raises:
            CommandError: if the command fails.
        """
        return self._run("--cancel")

    def wait(self, seconds: float) -> None:
        """Wait until it is done.

        Raises:
            NotInTimeError: if it is not in time.
        """
        until("the reassignment is done", self.verify, seconds)

    def _run(self, *arguments: str) -> str:
        asked = ["--bootstrap-server", self._bootstrap, "--reassignment-json-file", str(self._file), *arguments]
        return run_command(self._release, "reassign", self._release.reassign, asked, self._folder / "quiet.properties")
