"""A standalone cluster of Spark on loopback: a master and two workers, whose Python lacks this project."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import venv
import zipfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from tests.patience import PATIENCE_S
from tools.real_broker.client import until

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("layout", "logstore", "reconciler")
LIGHT = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""A JVM that starts soon and leaves the processor to the others."""

_HOLD = """
import os, time
folder = {folder!r}
if os.path.exists(os.path.join(folder, "hold")):
    open(os.path.join(folder, f"waiting-{{os.getppid()}}-{{os.getpid()}}"), "w").close()
    while os.path.exists(os.path.join(folder, "hold")):
        time.sleep(0.02)
"""


class StandaloneCluster:
    """Starts with ``with``; every process is stopped by its own process id."""

    def __init__(self, spark_home: Path, folder: Path) -> None:
        self.folder = folder
        self.gate = folder / "gate"
        self.archive = folder / "kafka_logstore.zip"
        self.python = folder / "python" / "bin" / "python"
        self._home = spark_home
        self._port = _free_port()
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def master(self) -> str:
        return f"spark://127.0.0.1:{self._port}"

    def __enter__(self) -> StandaloneCluster:
        self.gate.mkdir()
        _make_python(self.folder / "python", self.gate)
        _archive(self.archive)
        host = ["--host", "127.0.0.1"]
        self._start("master", "master.Master", [*host, "--port", str(self._port), "--webui-port", "0"])
        until("the master listens", lambda: _listens(self._port), PATIENCE_S)
        for name in ("one", "two"):
            self.start_worker(name)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in reversed(self._processes.values()):
            process.terminate()
        for process in self._processes.values():
            process.wait(PATIENCE_S)

    def start_worker(self, name: str) -> None:
        work = str(self.folder / "work" / name)
        resources = ["--cores", "1", "--memory", "600m", "--work-dir", work]
        self._start(name, "worker.Worker", ["--host", "127.0.0.1", "--webui-port", "0", *resources, self.master])
        log = self.folder / f"{name}.log"
        until("the worker has its master", lambda: b"Successfully registered" in log.read_bytes(), PATIENCE_S)

    def kill_worker(self, name: str) -> None:
        """Let a machine vanish: the worker, its executor, and what that runs."""
        worker = self._processes.pop(name)
        for pid in _descendants(worker.pid):
            os.kill(pid, signal.SIGKILL)
        worker.kill()
        worker.wait(PATIENCE_S)

    def executors(self) -> list[int]:
        """The process ids of the executors that run."""
        workers = [process.pid for name, process in self._processes.items() if name != "master"]
        return [pid for worker in workers for pid in _children(worker)]

    def submit(
        self, *arguments: str, conf: Mapping[str, str] | None = None, brings_package: bool = True
    ) -> subprocess.Popen[bytes]:
        """Start the audit as a user's job; the driver has this project, and executors have what the job brings."""
        archive = ["--py-files", str(self.archive)] if brings_package else []
        settings = {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": "512m",
            "spark.driver.extraJavaOptions": LIGHT,
            "spark.executor.memory": "512m",
            "spark.executor.extraJavaOptions": LIGHT,
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            **(conf or {}),
        }
        command = [str(self._home / "bin" / "spark-submit"), "--master", self.master, *archive]
        command += [each for name, value in settings.items() for each in ("--conf", f"{name}={value}")]
        command += [str(ROOT / "tools" / "spark_audit.py"), *arguments]
        python = {"PYSPARK_PYTHON": str(self.python), "PYSPARK_DRIVER_PYTHON": sys.executable}
        return subprocess.Popen(
            command, cwd=self.folder, env=self._environment() | python, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def _start(self, name: str, program: str, arguments: list[str]) -> None:
        java = ["java", "-Xmx192m", *LIGHT.split(), "-cp", f"{self._home}/jars/*"]
        with open(self.folder / f"{name}.log", "wb") as log:
            self._processes[name] = subprocess.Popen(
                [*java, f"org.apache.spark.deploy.{program}", *arguments],
                cwd=self.folder, env=self._environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip

    def _environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "JAVA_HOME", "HOME") if name in os.environ}
        (core,) = self._home.glob("jars/spark-core_*.jar")
        scala = core.name.removeprefix("spark-core_").split("-")[0]  # a shell script of Spark's would have set it
        here = {"SPARK_LOCAL_IP": "127.0.0.1"}
        return kept | here | {"SPARK_HOME": str(self._home), "SPARK_SCALA_VERSION": scala}


def _make_python(folder: Path, gate: Path) -> None:
    """Make an interpreter that has this project's dependencies and not the project, and waits at a gate."""
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    # A line of a .pth file adds a folder and not the .pth files in it, such as that of an editable installation.
    packages = {str(Path(module.__file__ or "").parents[1]) for module in _dependencies()}
    (site / "dependencies.pth").write_text("\n".join(sorted(packages)))
    (site / "sitecustomize.py").write_text(_HOLD.format(folder=str(gate)))


def _dependencies() -> list[object]:
    import duckdb
    import pyspark

    return [duckdb, pyspark]


def _archive(path: Path) -> None:
    """Write what the wheel holds, under a name that Spark takes for a package."""
    with zipfile.ZipFile(path, "w") as archive:
        for package in PACKAGES:
            for file in sorted((ROOT / package).rglob("*")):
                if file.is_file() and file.suffix != ".pyc":
                    archive.write(file, file.relative_to(ROOT))


def _listens(port: int) -> bool:
    with socket.socket() as caller:
        return caller.connect_ex(("127.0.0.1", port)) == 0


def _children(pid: int) -> list[int]:
    """List the processes that a process has started, in any of its threads."""
    found: list[int] = []
    for thread in Path(f"/proc/{pid}/task").glob("*"):
        try:
            found += map(int, (thread / "children").read_text().split())
        except OSError:
            continue
    return found


def _descendants(pid: int) -> list[int]:
    return [found for child in _children(pid) for found in (child, *_descendants(child))]


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
