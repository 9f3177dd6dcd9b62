"""The kinds of metadata sources: the scheme of each, and how it is recognised and read.

A command reads one kind, and some kinds need libraries that take long to start. So a source's module is imported when
something is first asked of it. What a spec means is decided in ``locate``, and every format in its own module.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import TypeAlias

from layout.topic import METADATA_DIR
from reconciler.desired import Completeness, DesiredState

Loader: TypeAlias = Callable[[ModuleType, Sequence[str], str], list[DesiredState]]
"""The source's module, the paths, and the location as it was given → a state of each cluster."""


@dataclass(frozen=True, slots=True)
class SourceKind:
    """One kind of metadata source.

    Attributes:
        scheme: what stands before the colon of a spec.
        module: its module in this package.
        looks_like: what a path must look like to be recognised, for messages.
        loader: reads paths of this kind.
        recogniser: the module's function that looks at a path, for kinds that are paths.
        suffix: a file that a user named is of this kind by this end of its name alone; a file met in a folder is not.
        is_path: False: an address follows the colon, and nothing on a disk.
        together: several files of one place make one state, so one that cannot be read spoils them all.
    """

    scheme: str
    module: str
    looks_like: str
    loader: Loader
    recogniser: str = "recognises"
    suffix: str | None = None
    is_path: bool = True
    together: bool = False

    def recognises(self, path: str) -> bool:
        """Whether a path looks like this kind; an address is asked for by its scheme, and never met on a disk."""
        return self.is_path and bool(getattr(self._imported(), self.recogniser)(path))

    def load(self, paths: Sequence[str], location: str) -> list[DesiredState]:
        """Read paths of this kind.

        Raises:
            MetadataError: one of them cannot be read.
            UsageError: they do not fit together.
        """
        return self.loader(self._imported(), paths, location)

    def _imported(self) -> ModuleType:
        return import_module(f"reconciler.sources.{self.module}")


def _each(module: ModuleType, paths: Sequence[str], _location: str) -> list[DesiredState]:
    return [module.load(path) for path in paths]


def _described(completeness: Completeness) -> Loader:
    return lambda module, paths, location: [module.load_one(paths, location, completeness)]


SOURCES = (
    SourceKind(
        "parquet",
        "parquet",
        "a folder with identity.json and replicas.parquet, as an audit saves it",
        _each,
        "is_saved_state",
    ),
    SourceKind(
        "kraft", "kraft.source", f"a {METADATA_DIR} directory, a log dir that holds one, or a *.checkpoint file", _each
    ),
    SourceKind(
        "zk-snapshot",
        "zookeeper.snapshot",
        "a snapshot.<zxid> file of ZooKeeper, its version-2 folder, or the data folder above",
        _each,
    ),
    SourceKind(
        "describe",
        "kafka.describe",
        "the output of kafka-topics --describe, of some topics (describe-all: of all topics)",
        _described(Completeness.INCREMENTAL),
        together=True,
    ),
    SourceKind(
        "describe-all",
        "kafka.describe",
        "the output of kafka-topics --describe, of all topics",
        _described(Completeness.FULL),
        together=True,
    ),
    SourceKind(
        "request",
        "requests",
        "a LeaderAndIsr request as JSON (request:FILE@N names the broker that received it), or an UpdateMetadata",
        lambda module, paths, location: [module.load_json(paths, location)],
        "is_json_request",
        ".json",
        together=True,
    ),
    SourceKind(
        "wire",
        "requests",
        "a LeaderAndIsr request as bytes, with its header (wire:FILE@N names the broker), or an UpdateMetadata",
        lambda module, paths, location: [module.load_wire(paths, location)],
        "is_wire_request",
        together=True,
    ),
    SourceKind("zk", "zookeeper.live", "HOST:PORT[,HOST:PORT…][/chroot] of a live ZooKeeper", _each, is_path=False),
    SourceKind("kafka", "kafka.admin", "HOST:PORT[,HOST:PORT…][?config=FILE] of a live cluster", _each, is_path=False),
    SourceKind(
        "kafka-all",
        "kafka.admin",
        "as kafka:, for a user who may describe every topic",
        lambda module, paths, _: [module.load(path, is_vouched=True) for path in paths],
        is_path=False,
    ),
)
"""In the order in which a path is looked at."""
