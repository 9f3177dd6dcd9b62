"""A command as a value: a verb of this program or a tool of others, its arguments, and the text that a shell takes.

What is not known from here stands in the command as a blank in capitals, such as ``HOST:PORT``; everything else of it
works when it is pasted.
"""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.text import quoted

PROGRAM = "logstore"
"""The name under which this program is installed."""

SOURCE, SERVER, LOG_DIR, OTHER_LOG_DIR, RELEASE = "SOURCE", "HOST:PORT", "LOG_DIR", "OTHER_LOG_DIR", "RELEASE"
CONFIG = "SERVER_PROPERTIES"
BLANKS = (SERVER, OTHER_LOG_DIR, LOG_DIR, SOURCE, RELEASE, CONFIG)
"""What a reader fills in, because no file on the disks says it."""


@dataclass(frozen=True, slots=True)
class ToolCommand:
    """A call of another program: one of Kafka's tools, or one of the system's."""

    program: str
    arguments: tuple[str, ...] = ()

    @property
    def argv(self) -> tuple[str, ...]:
        """The words of the command, the program first."""
        return (self.program, *self.arguments)

    @property
    def text(self) -> str:
        """The command as a shell takes it."""
        return " ".join(map(quoted, self.argv))

    @property
    def blanks(self) -> tuple[str, ...]:
        """What has to be filled in before the command can be run."""
        return tuple(blank for blank in BLANKS if blank in self.arguments)


@dataclass(frozen=True, slots=True)
class Command:
    """A call of this program."""

    verb: str
    arguments: tuple[str, ...] = ()

    @property
    def argv(self) -> tuple[str, ...]:
        """The words of the command, the program first."""
        return self._call.argv

    @property
    def text(self) -> str:
        """The command as a shell takes it."""
        return self._call.text

    @property
    def blanks(self) -> tuple[str, ...]:
        """What has to be filled in before the command can be run."""
        return self._call.blanks

    @property
    def _call(self) -> ToolCommand:
        return ToolCommand(PROGRAM, (self.verb, *self.arguments))


@dataclass(frozen=True, slots=True)
class Step:
    """One step on the way to a healthy broker."""

    why: str
    """What the step is for, one sentence."""
    command: Command | ToolCommand | None = None
    """None: what no command here can do, such as starting the broker."""
    later: bool = False
    """Whether its time has not come yet; the sentence says when it has."""

    @property
    def text(self) -> str | None:
        """The command as a shell takes it; None: there is none."""
        return None if self.command is None else self.command.text

    def as_row(self) -> dict[str, str | bool | None]:
        """Return the step as JSON has it."""
        return {"command": self.text, "why": self.why, "later": self.later}
