"""A real ZooKeeper server on the loopback interface, from the jars that PySpark carries."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from tests.patience import PATIENCE_S
from tools.real_broker.client import until
from tools.real_broker.servers import gives_sessions

SERVER = "org.apache.zookeeper.server.quorum.QuorumPeerMain"


class ZooKeeperServer:
    """One server over one data folder; each ``with`` starts it and stops it by its own process id.

    A server that starts writes a snapshot of all that its transaction log holds: to get one, start it again.
    """

    def __init__(self, jars: Path, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.port = _free_port()
        self._jars = jars
        self._process: subprocess.Popen[bytes] | None = None
        self.options: list[str] = []

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> ZooKeeperServer:
        self.data.mkdir(parents=True, exist_ok=True)
        config = self.folder / "zoo.cfg"
        config.write_text(
            f"dataDir={self.data}\nclientPort={self.port}\nclientPortAddress=127.0.0.1\n"
            "admin.enableServer=false\n4lw.commands.whitelist=*\ntickTime=2000\n"
        )
        command = ["java", "-Xmx128m", *self.options, "-cp", f"{self._jars}/*", SERVER, str(config)]
        with open(self.folder / "server.log", "ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        self._process.terminate()
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def connect(self) -> Any:
        """A client that is connected; whoever asks for it stops it."""
        from kazoo.client import KazooClient

        until("ZooKeeper gives sessions", lambda: gives_sessions(self.port), PATIENCE_S)
        client = KazooClient(hosts=self.address, timeout=30)
        client.start(PATIENCE_S)
        return client

    def snapshots(self) -> list[Path]:
        """The snapshot files, the newest last."""
        found = self.data.glob("version-2/snapshot.*")
        return sorted(found, key=lambda path: int(path.name.split(".")[1], 16))


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    """A server that is not running yet, over an empty folder."""
    pytest.importorskip("kazoo", reason="kazoo is not installed")
    pyspark = pytest.importorskip("pyspark", reason="PySpark, which carries ZooKeeper's jars, is not installed")
    jars = Path(pyspark.__file__).parent / "jars"
    if not any(jars.glob("zookeeper-[0-9]*.jar")):
        pytest.skip(f"no ZooKeeper among the jars of {jars}")
    if shutil.which("java") is None:
        pytest.skip("there is no java on the path")
    yield ZooKeeperServer(jars, tmp_path_factory.mktemp("zookeeper"))


@pytest.fixture(scope="module")
def server(zookeeper: ZooKeeperServer) -> Iterator[ZooKeeperServer]:
    """A running server."""
    with zookeeper:
        yield zookeeper


def below_chroot(server: Any, request: pytest.FixtureRequest, nodes: Mapping[str, bytes]) -> Iterator[Any]:
    """A client below a chroot of a test's own, which holds some nodes."""
    client = server.connect()
    chroot = "/kafka-" + "".join(each if each.isalnum() else "-" for each in request.node.name)
    client.ensure_path(chroot)
    client.chroot = chroot
    for path, data in nodes.items():
        client.create(path, data, makepath=True)
    yield client
    client.stop()
    client.close()


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
