"""``tools/real-broker``: starts a cluster for use by hand, fetches the releases, or lists them."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from tools.real_broker.cluster import Cluster
from tools.real_broker.errors import RealBrokerError
from tools.real_broker.fetch import class_path, known_class_path
from tools.real_broker.releases import RELEASES, Mode, find_release

INTERRUPTED = 130
"""The exit code after a Ctrl-C while a cluster was still on its way; what ran is killed."""


def main(arguments: Sequence[str]) -> int:
    """Do what was asked; 0, 1 with one message where it could not be done, or 130 when interrupted before it was."""
    asked = _parser().parse_args(arguments)
    try:
        if asked.verb == "versions":
            list_versions()
        elif asked.verb == "fetch":
            fetch(asked.releases)
        elif asked.dir is not None:
            up(asked, asked.dir)
        else:
            with tempfile.TemporaryDirectory(prefix="real-broker-") as folder:
                up(asked, Path(folder) / "cluster")
    except RealBrokerError as error:
        print(f"real-broker: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tools/real-broker", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    up_verb = verbs.add_parser("up", help="start a cluster, say where it is, and stop it on Ctrl-C")
    up_verb.add_argument("release", help=f"one of {', '.join(RELEASES)}")
    up_verb.add_argument("--mode", choices=[str(mode) for mode in Mode], help="who keeps the metadata")
    up_verb.add_argument("--brokers", type=int, default=1, metavar="N", help="how many (default: 1)")
    up_verb.add_argument("--log-dirs", type=int, default=1, metavar="N", help="disks of each broker (default: 1)")
    up_verb.add_argument(
        "--dir", type=Path, metavar="FOLDER", help="takes the disks and stays; else they go at the end"
    )
    fetch_verb = verbs.add_parser("fetch", help="have Maven bring the jars, to be ready without a network")
    fetch_verb.add_argument("releases", nargs="*", help="which; all if none is named")
    verbs.add_parser("versions", help="list what there is, and what is fetched")
    return parser


def list_versions() -> None:
    """Print each release with its modes, the default first, and whether it is fetched."""
    for release in RELEASES.values():
        state = "not fetched" if known_class_path(release) is None else "fetched"
        print(f"{release.name}\t{release.version}\t{','.join(release.modes)}\t{state}")


def fetch(names: Sequence[str]) -> None:
    """Resolve releases.

    Raises:
        RealBrokerError: for an unknown one, or one that Maven cannot resolve.
    """
    for release in [find_release(name) for name in names] or RELEASES.values():
        jars = class_path(release)
        print(f"Kafka {release.version}: {jars.count(':') + 1} jars", flush=True)


def up(asked: argparse.Namespace, folder: Path) -> None:
    """Start a cluster, print where it is, and stop it cleanly on SIGINT or SIGTERM.

    Raises:
        RealBrokerError: if it could not be started or stopped.
    """
    asked_to_stop = threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        asked_to_stop.set()

    options = {"mode": asked.mode, "brokers": asked.brokers, "log_dirs": asked.log_dirs}
    with Cluster(asked.release, folder, **options) as cluster:
        signal.signal(signal.SIGINT, stop)
        signal.signal(signal.SIGTERM, stop)
        print(described(cluster), flush=True)
        asked_to_stop.wait()
        print("stopping", flush=True)


def described(cluster: Cluster) -> str:
    """List the addresses and the disks of a cluster, one to a line."""
    lines = [f"Kafka {cluster.release.version} ({cluster.mode}), cluster {cluster.cluster_id}"]
    lines.append(f"bootstrap\t{cluster.bootstrap}")
    if cluster.mode is Mode.ZOOKEEPER:
        lines.append(f"zookeeper\t{cluster.zookeeper}")
    lines.append(f"metadata\t{cluster.metadata.data}")
    for number, broker in cluster.brokers.items():
        lines += [f"broker {number}\t{path}" for path in broker.log_dirs]
    lines.append("Ctrl-C stops it")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
