"""How the program was called, and the commands that follow from it, with every option that they need.

Each method makes one command. All of them name every log dir of the broker, the metadata, what the broker is and the
folder of fallback records as they were given, so that no next command looks at less than the one before it, nor does
any that it prints in turn.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from reconciler.next_steps.command import LOG_DIR, SERVER, SOURCE, Command, ToolCommand

_LIVE = ("kafka:", "kafka-all:", "zk:")
"""Beginnings of sources that answer with what holds at the moment they are asked."""

PLAN_FILE, REPAIR_FILE, ADOPTION_FILE = "plan.json", "repair.json", "adoption.json"
"""Where the printed commands keep a plan, one of repairs and one that adopts data: in the current directory."""

WITHOUT_ID = "--strays-without-id"
"""The option of a plan for strays without a topic ID."""

REFETCH = "--refetch"
"""The option of a plan for topics whose replicas without a certain topic ID are fetched anew."""

FALLBACK_FOLDER = "/var/lib/logstore/spare-records"
"""The folder of fallback records that every command finds by itself, where it is there: an operator makes it once, on a
disk that holds no log dir."""


@dataclass(frozen=True, slots=True)
class Call:
    """What a next command takes over from the call before it.

    Attributes:
        log_dirs: all log dirs of the broker, as they were given; empty: not known, so the command has a blank.
        metadata: values of ``--metadata``; empty: none was given or found.
        fallback: value of ``--spare-records``; None: the folder that commands find by themselves, or none.
        release: value of ``--kafka``; None: as the command takes it by default.
        mode: value of ``--mode``; None: as the log dirs tell.
        metadata_log_dir: value of ``--metadata-log-dir``; None: among the log dirs.
        policy: value of ``--policy``; None: there is no policy.
        opened: the options that open gates for a plan of repairs, as they are typed; None: none are needed.
    """

    log_dirs: tuple[str, ...] = ()
    metadata: tuple[str, ...] = ()
    fallback: str | None = None
    release: str | None = None
    mode: str | None = None
    metadata_log_dir: str | None = None
    policy: str | None = None
    opened: str | None = None

    @property
    def _paths(self) -> tuple[str, ...]:
        return tuple(map(_as_argument, self.log_dirs)) or (LOG_DIR,)

    @property
    def _sources(self) -> tuple[str, ...]:
        return tuple(word for source in self.metadata for word in ("--metadata", source))

    @property
    def _fallback(self) -> tuple[str, ...]:
        return () if self.fallback is None else ("--spare-records", self.fallback)

    @property
    def _broker(self) -> tuple[str, ...]:
        options = (
            *(("--kafka", self.release), ("--mode", self.mode), ("--metadata-log-dir", self.metadata_log_dir)),
            ("--policy", self.policy),
        )
        return tuple(word for name, value in options if value is not None for word in (name, value))

    def with_fallback(self, folder: str) -> Call:
        """Return the same call with a folder of fallback records."""
        return replace(self, fallback=folder)

    def doctor(self, *, other_log_dir: str | None = None, source: str | None = None) -> Command:
        """Look at everything once more, with another log dir or another source of metadata."""
        paths = self._paths if other_log_dir is None else (*self._paths, other_log_dir)
        sources = self._sources if source is None else ("--metadata", source)
        return Command("doctor", (*paths, *sources, *self._broker, *self._fallback))

    def audit(self, *, source: str | None = None, verdict: str | None = None) -> Command:
        """Compare all log dirs with the metadata."""
        chosen = () if verdict is None else ("--verdict", verdict)
        sources = self._sources if source is None else ("--metadata", source)
        return Command("audit", (*self._paths, *sources, *chosen, *self._broker, *self._fallback))

    def scan(self) -> Command:
        """List what lies in the log dirs."""
        return Command("scan", self._paths)

    def explain(self, path: str) -> Command:
        """Explain one path, with the other log dirs of its broker in view."""
        named = tuple(word for each in self.log_dirs for word in ("--log-dir", each))
        others = named if len(self.log_dirs) > 1 else ()
        passed_on = (*self._broker, *self._fallback)
        return Command("explain", (_as_argument(path), *others, *self._sources, *passed_on))

    def preflight(self, *, metadata_log_dir: str | None = None) -> Command:
        """Ask whether the broker would start."""
        options = self._broker
        if metadata_log_dir is not None:
            options = (*options, "--metadata-log-dir", metadata_log_dir)
        return Command("preflight", (*self._paths, *self._sources, *options, *self._fallback))

    def plan(self, *, strays: bool = False, without_id: bool = False, refetched: Iterable[str] = ()) -> Command:
        """Plan what is staged, restored and written, with topics whose replicas without a certain ID are staged."""
        chosen = (*(("--strays",) if strays else ()), *((WITHOUT_ID,) if without_id else ()))
        chosen += tuple(word for topic in sorted(refetched) for word in (REFETCH, topic))
        passed_on = (*self._broker, *self._fallback)
        sources = self._sources or ("--metadata", SOURCE)
        return Command("plan", (*self._paths, *sources, *chosen, *passed_on, "-o", PLAN_FILE))

    def plan_again(self, options: Sequence[str], plan_file: str) -> Command:
        """Plan as before, with the options of that plan; what this call names beside them is passed on too."""
        passed_on = (*self._broker, *self._fallback)
        pairs = zip(passed_on[::2], passed_on[1::2], strict=True)
        added = (word for name, value in pairs if name not in options for word in (name, value))
        return Command("plan", (*self._paths, *self._sources, *options, *added, "-o", plan_file))

    def apply(self, plan_file: str = PLAN_FILE) -> Command:
        """Carry out a plan."""
        return Command("apply", (_as_argument(plan_file), *self._broker, *self._fallback))

    def repair(self, *, only: Iterable[str] = (), adopted: Collection[str] = (), kept: Iterable[str] = ()) -> Command:
        """Plan what is put right, of all kinds or of some, with topics whose data is adopted, and copies that stay."""
        kinds = [("--only", kind) for kind in sorted(only)]
        chosen = [*kinds, *(("--adopt-topic-id", topic) for topic in sorted(adopted))]
        chosen += [("--keep", path) for path in sorted(kept)]
        words = (*(word for pair in chosen for word in pair), *shlex.split(self.opened or ""))
        plan_file = ADOPTION_FILE if adopted else REPAIR_FILE
        passed_on = (*self._broker, *self._fallback)
        return Command("repair", (*self._paths, *self._sources, *words, *passed_on, "-o", plan_file))

    def apply_repair(self, plan_file: str = REPAIR_FILE) -> Command:
        """Carry out a plan of repairs."""
        return Command("repair", ("--apply", _as_argument(plan_file), *self._broker, *self._fallback))

    def undo_repair(self, backups: Iterable[str]) -> Command:
        """Take back what a repair changed."""
        return Command("repair", ("--undo", *backups))

    def staged(self) -> Command:
        """List what is staged."""
        return Command("staged", (*self._paths, *self._broker, *self._fallback))

    def restore(
        self,
        *,
        topic: str | None = None,
        partition: int | None = None,
        topic_id: str | None = None,
        locations: Iterable[str] = (),
        was: str | None = None,
        other_log_dirs: Iterable[str] = (),
        as_stray: bool = False,
        dry_run: bool = False,
    ) -> Command:
        """Bring staged replicas back; without a choice, all that have a record.

        A live source is left out: it may be this very broker, which is stopped by then.
        """
        # Joined by "=", because a topic ID may begin with "-".
        options = (
            *(("--topic", topic) if topic is not None else ()),
            *(("--partition", str(partition)) if partition is not None else ()),
            *((f"--topic-id={topic_id}",) if topic_id is not None else ()),
            *(word for location in locations for word in ("--location", location)),
        )
        paths = (*self._paths, *map(_as_argument, other_log_dirs))
        files = (source for source in self.metadata if not source.startswith(_LIVE))
        asked = tuple(word for source in files for word in ("--metadata", source))
        flags = (*(("--as-stray",) if as_stray else ()), *(("--dry-run",) if dry_run else ()))
        named = (*(("--as", was) if was is not None else ()), *flags)
        return Command("restore", (*paths, *(options or ("--all",)), *asked, *named, *self._broker, *self._fallback))

    def purge(
        self,
        *,
        locations: Iterable[str] = (),
        before_due: bool = False,
        dry_run: bool = False,
        asks_files: bool = False,
    ) -> Command:
        """Delete what is staged and due; a live source is asked once more, and a file would say what it said before.

        ``asks_files``: files are asked all the same, because something that is due is wanted again by what they say.
        """
        chosen = tuple(word for location in locations for word in ("--location", location))
        flags = (*(("--before-due",) if before_due else ()), *(("--dry-run",) if dry_run else ()))
        sources = (source for source in self.metadata if asks_files or source.startswith(_LIVE))
        asked = tuple(word for source in sources for word in ("--metadata", source))
        return Command("purge", (*self._paths, *asked, *chosen, *flags, *self._broker, *self._fallback))

    def check_policy(self) -> Command:
        """Say what the policy means for the log dirs."""
        return Command("policy", ("check", _as_argument(str(self.policy)), *self._paths, *self._sources))

    def finish_change(self, scheme: str) -> Command:
        """Open the log dirs to change them, which finishes what was cut short; they have the scheme then already."""
        return Command("convert", (*self._paths, "--to", scheme, *self._fallback))

    def convert_to_flat(self, log_dir: str) -> Command:
        """Show how a log dir would be laid out as a real broker needs it."""
        return Command("convert", (_as_argument(log_dir), "--to", "flat", "--dry-run", *self._fallback))

    @property
    def server(self) -> str:
        """The address of a broker for Kafka's own tools; a blank where no live source was named."""
        for source in self.metadata:
            kind, _, address = source.partition(":")
            if kind in ("kafka", "kafka-all"):
                return address.partition("?")[0]
        return SERVER

    def kafka_tool(self, program: str, *arguments: str) -> ToolCommand:
        """Call one of Kafka's own tools at the broker that the metadata was asked of."""
        config = next((source.partition("?config=")[2] for source in self.metadata if "?config=" in source), "")
        settings = ("--command-config", config) if config and self.server != SERVER else ()
        return ToolCommand(program, ("--bootstrap-server", self.server, *settings, *arguments))


def _as_argument(path: str) -> str:
    """Return a path so that it cannot be taken for an option."""
    return f"./{path}" if path.startswith("-") else path
