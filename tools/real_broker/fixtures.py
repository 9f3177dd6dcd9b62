"""``python -m tools.real_broker.fixtures OUT``: disks of real brokers with planted damage, as small archives.

For each release and mode two files: ``3.9-kraft.tar.xz`` holds ``broker-1/disk1`` to ``broker-3/disk2`` and the folder
``metadata``, the controller's log dir or ZooKeeper's data; ``3.9-kraft.json`` says what was planted in it and what must
be found there, as it follows from how it was made (``fixtures_story``).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tools.real_broker.cluster import Cluster
from tools.real_broker.errors import RealBrokerError
from tools.real_broker.fixtures_archive import pack
from tools.real_broker.fixtures_planted import manifest
from tools.real_broker.fixtures_story import BROKERS, LOG_DIRS, SETTINGS, Story
from tools.real_broker.releases import EACH_WAY

WAYS = {"-".join(way): way for way in EACH_WAY}

OPTIONS: Mapping[str, Any] = MappingProxyType({"brokers": BROKERS, "log_dirs": LOG_DIRS, "settings": SETTINGS})
"""Of the cluster that a story needs."""


def make(name: str, folder: Path, out: Path) -> dict[str, Any]:
    """Run one cluster through its story, write its archive and its manifest, and give the manifest.

    Args:
        name: release and mode: ``3.9-zk``.
        folder: where the cluster works; must be empty or not be there.
        out: takes the two files.

    Raises:
        RealBrokerError: if the cluster does not do as it should.
    """
    release, mode = WAYS[name]
    with Cluster(release, folder, mode=mode, **OPTIONS) as cluster:
        story = Story(cluster)
        story.tell()
        return write(name, story, out)


def write(name: str, story: Story, out: Path) -> dict[str, Any]:
    """Write the archive and the manifest of a story that was told, and give the manifest."""
    out.mkdir(parents=True, exist_ok=True)
    folders = {f"broker-{n}/{disk.name}": disk for n, each in story.cluster.brokers.items() for disk in each.log_dirs}
    pack(out / f"{name}.tar.xz", {**folders, "metadata": story.cluster.metadata.data})
    said = manifest(story.cluster, story.topics, story.planted)
    (out / f"{name}.json").write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
    return said


def main(arguments: Sequence[str]) -> int:
    """Make what was asked for; 0, or 1 with one message where it could not be done."""
    parser = argparse.ArgumentParser(prog="python -m tools.real_broker.fixtures", description=__doc__)
    parser.add_argument("out", type=Path, metavar="OUT", help="takes two files of each")
    parser.add_argument("ways", nargs="*", metavar="WAY", help=f"of {', '.join(WAYS)}; all if none is named")
    asked = parser.parse_args(arguments)
    unknown = sorted(set(asked.ways) - set(WAYS))
    if unknown:
        parser.error(f"there is no way {unknown[0]!r} here; take one of {', '.join(WAYS)}")
    for name in asked.ways or WAYS:
        try:
            with tempfile.TemporaryDirectory(prefix="real-broker-") as folder:
                said = make(name, Path(folder) / "cluster", asked.out)
        except RealBrokerError as error:
            print(f"{name}: {error}", file=sys.stderr)
            return 1
        print(f"{name}: {len(said['topics'])} topics, {len(said['planted'])} faults planted", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
