"""Starts Spark as this project needs it, or says in one sentence why there is none here.

Owns the settings of a session and the checks before it: PySpark is installed, and there is a Java that is new enough. A
session that is there already (a notebook's, spark-submit's) is taken as it is. Traps that the settings avoid are
explained beside them. Nothing here imports PySpark before a session is asked for.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

from reconciler.errors import EngineUnavailableError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OLDEST_JAVA = 17
"""Spark 4 needs it."""

WITHOUT = "or leave out --spark: the embedded audit needs neither"

_PARTITIONS_PER_CORE = 4
_LOCAL = re.compile(r"local(?:\[(\*|\d+)(?:,\s*\d+)?\])?")
_JAVA_VERSION = re.compile(r'version "(?:1\.)?(\d+)')


def open_session(master: str | None = None, *, memory: str = "3g") -> SparkSession:
    """Return the session that is running, or start one. Who asked for it stops it.

    Args:
        master: as Spark writes it; None: what spark-submit set, else all cores of this machine.
        memory: heap of the driver, which in local mode is where everything happens. It counts only for a JVM that is
            started here.

    Raises:
        EngineUnavailableError: no PySpark, no Java or one that is too old, or a master that cannot be reached.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise EngineUnavailableError(
            f"Spark is not installed ({error}): pip install 'kafka-logstore[spark]', {WITHOUT}"
        ) from error
    if SparkSession.getActiveSession() is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
        # The JVM is a notebook's, a test's or spark-submit's own, and its settings were given there.
        return SparkSession.builder.getOrCreate()
    check_java()
    _environment(local_cores(master or "local[*]") is not None)
    return _start(master or "local[*]", memory)


def settings(master: str, memory: str) -> dict[str, str]:
    """The settings of a session that is started here."""
    chosen = {
        "spark.driver.memory": memory,
        # An audit is over before a collector that works beside it pays: this one leaves the processors to the join.
        "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # A Python task costs 40 ms over loopback TCP and 5 ms over a socket in the file system.
        "spark.python.unix.domain.socket.enabled": "true",
    }
    cores = local_cores(master)
    if cores is not None:
        # Where the host's name resolves to loopback, Spark would bind another interface and not find itself.
        chosen |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.shuffle.partitions": str(cores * _PARTITIONS_PER_CORE),
        }
    return chosen


def local_cores(master: str) -> int | None:
    """Cores that a local master uses; None for a cluster."""
    match = _LOCAL.fullmatch(master)
    if match is None:
        return None
    return len(os.sched_getaffinity(0)) if match[1] == "*" else int(match[1] or 1)


def check_java(environ: Mapping[str, str] = os.environ) -> None:
    """Make sure that the Java which Spark will take is there and new enough.

    Raises:
        EngineUnavailableError: it is not.
    """
    advice = f"install Java {OLDEST_JAVA} or newer (or set JAVA_HOME to one), {WITHOUT}"
    home = environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java", path=environ.get("PATH"))
    if java is None:
        raise EngineUnavailableError(f"Spark needs Java, and there is no `java` on the PATH: {advice}")
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EngineUnavailableError(f"Spark needs Java, and {java} does not run ({error}): {advice}") from error
    version = _JAVA_VERSION.search(answer.stderr + answer.stdout)
    if version is None:
        raise EngineUnavailableError(f"Spark needs Java, and {java} -version tells no version: {advice}")
    if int(version[1]) < OLDEST_JAVA:
        raise EngineUnavailableError(f"Spark needs Java {OLDEST_JAVA}, and {java} is version {version[1]}: {advice}")


def _environment(local: bool) -> None:
    """Set what Spark reads from the environment only, where the user has not set it."""
    # Workers would otherwise run the first python3 of the PATH, which need not have pyarrow, nor this package.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")


def _start(master: str, memory: str) -> SparkSession:
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("logstore audit").master(master)
    for name, value in settings(master, memory).items():
        builder = builder.config(name, value)
    with _stderr_in_file() as noise:
        try:
            spark = builder.getOrCreate()
        except (PySparkException, Py4JError, OSError, RuntimeError) as error:
            raise EngineUnavailableError(
                f"Spark does not start with master {master}: {_reason(error, noise)}"
            ) from error
        spark.sparkContext.setLogLevel("ERROR")
    return spark


@contextmanager
def _stderr_in_file() -> Iterator[BinaryIO]:
    """Give a JVM that starts meanwhile a nameless file as its standard error, for all its life."""
    with tempfile.TemporaryFile() as noise:
        sys.stderr.flush()
        kept = os.dup(2)
        try:
            os.dup2(noise.fileno(), 2)
            yield noise
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def _reason(error: Exception, noise: BinaryIO) -> str:
    """The line that says most: of what the JVM wrote, else of the error."""
    noise.seek(0)
    lines = [line.strip() for line in noise.read(1 << 20).decode("utf-8", "replace").splitlines()]
    told = [line for line in lines if "Exception" in line or line.startswith("Error")]
    return (told or str(error).strip().splitlines() or [type(error).__name__])[0][:300]
