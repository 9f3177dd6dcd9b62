"""The operator who knows nothing: runs what README says first, and then only what the tool printed.

A printed command is pasted as it stands. Where it has a blank, the operator fills in what anybody knows who stands
before the machine: the other disk, or the controllers' metadata. What has no command is done by hand: the broker is
stopped and started, a disk is mounted.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from click.testing import CliRunner, Result

from reconciler.cli import logstore

MOST_STEPS = 8
NOBODY_HAS_TO_ACT = {
    *("OK", "STAGED", "FUTURE", "IN_FLIGHT", "NOT_COMPARED"),
    *("MARKED_DELETE", "FUTURE_ABANDONED"),  # a running broker's own work
    "FOREIGN",  # what is left of it is a plain file, which a broker passes over
}
_THEN = re.compile(r"^    (logstore doctor .*)$", re.MULTILINE)
_WAY_OUT = re.compile(r"^logstore: next: to plan all the same:\n    (logstore .*)$", re.MULTILINE)


class Patient(Protocol):
    """A broker that the operator heals."""

    @property
    def disks(self) -> Sequence[Path]:
        """All its log dirs."""

    @property
    def given(self) -> Collection[int]:
        """The disks that the operator names, by their places in ``disks``."""

    @property
    def first_source(self) -> str:
        """The metadata that the operator names."""

    @property
    def source(self) -> str:
        """The metadata that a blank for it is filled with."""

    @property
    def wanted(self) -> Collection[str]:
        """Names of the replicas that it should have."""

    @property
    def release(self) -> str:
        """The release that a blank for it is filled with."""

    @property
    def config(self) -> str:
        """The file with the broker's settings that a blank for it is filled with."""

    def learn(self) -> None:
        """From now on, the operator names every disk and ``source``."""

    def start(self) -> None:
        """Start the broker."""

    def stop(self) -> None:
        """Stop the broker."""

    def mount(self) -> bool:
        """Mount what is not mounted, and say whether there was something."""


@dataclass
class Operator:
    """Plays the loop, and keeps a protocol of it."""

    bench: Patient
    done: list[str] = field(default_factory=list)
    """Every pasted command, and everything that was done by hand."""
    changed: int = 0
    """How many steps were done when something had last changed; before that, a command may be the same as after."""
    failed: list[str] = field(default_factory=list)
    later: list[dict[str, Any]] = field(default_factory=list)
    """What doctor asks to look at again once the broker was started."""

    def heal(self) -> None:
        """Go on until nothing is left to do."""
        queue = self._first()
        while queue and len(self.done) <= MOST_STEPS:
            step = queue.pop(0)
            if step["command"] is None:
                queue += self._by_hand(step["why"])
                continue
            line = self._filled(step["command"])
            words = shlex.split(line)
            if line in self.done[self.changed :]:
                self.failed.append(f"repeated: {line}")
                return
            self.done.append(line)
            if words[0] != "logstore":
                self._tool(line)
                if words[0] == "findmnt" and self.bench.mount():
                    queue = self._first()
                continue
            ran = self._run(words[1:])
            if words[1] == "doctor":
                self.bench.learn()
                queue = self._steps(self._json(words))
                continue
            queue = self._after_repair(words, ran) or queue
            way_out = _WAY_OUT.search(ran.stderr)
            if ran.exit_code == 3 and way_out is not None:
                queue.insert(0, {"command": way_out[1], "why": "the gate is opened", "later": False})
            elif ran.exit_code not in (0, 1):
                self.failed.append(f"exit code {ran.exit_code}: {line}\n{ran.output}")
                return
        if len(self.done) > MOST_STEPS:
            self.failed.append("more than eight steps")

    def _after_repair(self, words: list[str], ran: Result) -> list[dict[str, Any]] | None:
        """Go on with what a repair printed: it may have made the next one possible."""
        then = _THEN.search(ran.stderr)
        if words[1:3] != ["repair", "--apply"] or then is None:
            return None
        self.changed = len(self.done)
        return [{"command": then[1], "why": "what is left", "later": False}]

    def _first(self) -> list[dict[str, Any]]:
        """Run what README says first."""
        given = [str(self.bench.disks[number]) for number in self.bench.given]
        words = ["logstore", "doctor", *given, "--metadata", self.bench.first_source]
        return self._steps(self._json(words))

    def _json(self, words: list[str]) -> Any:
        ran = self._run([*words[1:], "--format", "json"])
        if ran.exit_code not in (0, 1):
            self.failed.append(f"exit code {ran.exit_code}: {shlex.join(words)}\n{ran.output}")
            return {"brokers": []}
        return json.loads(ran.stdout)

    def _steps(self, document: Any) -> list[dict[str, Any]]:
        steps = [step for broker in document["brokers"] for step in broker["next"]]
        self.later = [step for step in steps if step["later"] and step["command"].startswith("logstore doctor ")]
        steps = [step for step in steps if not step["later"]]
        # The first blank is filled in before anything else: what follows was said without what it would tell.
        asked = [step for step in steps if (step["command"] or "").startswith("logstore ")]
        return [step for step in asked if self._filled(step["command"]) != step["command"]][:1] or steps

    def _filled(self, command: str) -> str:
        others = [str(disk) for number, disk in enumerate(self.bench.disks) if number not in self.bench.given]
        filled = command.replace("OTHER_LOG_DIR", " ".join(others)).replace("SOURCE", self.bench.source)
        return filled.replace("RELEASE", self.bench.release).replace("SERVER_PROPERTIES", self.bench.config)

    def _by_hand(self, why: str) -> list[dict[str, Any]]:
        """Do what has no command, and return what is looked at after it."""
        self.done.append(why.split(";", maxsplit=1)[0])
        self.changed = len(self.done)
        if why.startswith("start the broker"):
            self.bench.start()
            return self.later
        if why.startswith("stop the broker"):
            self.bench.stop()
        return []

    def _tool(self, line: str) -> None:
        if line.startswith(("mv ", "cp ", "kafka-storage.sh ")):
            self.changed = len(self.done)
        ran = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
        if ran.returncode != 0:
            self.failed.append(f"exit code {ran.returncode}: {line}\n{ran.stderr}")

    def _run(self, words: list[str]) -> Result:
        if words[0] in ("apply", "purge"):
            self.changed = len(self.done)
        return CliRunner().invoke(logstore, words)

    def left(self) -> list[str]:
        """List what is still wrong: the answer of preflight and of an audit, in sentences."""
        disks, source = [str(disk) for disk in self.bench.disks], ["--metadata", self.bench.source]
        start = json.loads(self._run(["preflight", *disks, *source, "--format", "json"]).stdout)
        audit = json.loads(self._run(["audit", *disks, *source, "--format", "json"]).stdout)
        left = [] if start["starts"] else [f"the broker does not start: {start['sentence']}"]
        left += [
            f"{each['verdict']} {each['log_dir']}/{each['name']}: {each['evidence']}"
            for each in audit["findings"]
            if each["verdict"] not in NOBODY_HAS_TO_ACT
        ]
        wanted = self.bench.wanted
        live = {each.name for disk in self.bench.disks for each in disk.iterdir() if each.name in wanted}
        return left + [f"{name} is nowhere" for name in sorted(set(wanted) - live)]
