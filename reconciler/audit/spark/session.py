"""Starts Spark with the settings that this project needs, or says in one sentence why it cannot.

Checks first that PySpark is installed and that there is a Java that is new enough. A running session (a notebook's,
spark-submit's) is taken as it is. The settings avoid traps that are explained beside them. PySpark is imported only
when a session is asked for.
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
"""Spark 4 needs at least this release."""

WITHOUT = "or leave out --spark: the embedded audit needs neither"

_PARTITIONS_PER_CORE = 4
_LOCAL = re.compile(r"local(?:\[(\*|\d+)(?:,\s*\d+)?\])?")
_JAVA_VERSION = re.compile(r'version "(?:1\.)?(\d+)')


def open_session(master: str | None = None, *, memory: str = "3g") -> SparkSession:
    """Return the running session, or start one. The caller stops it.

    Args:
        master: in Spark's notation; None: the master that spark-submit set, else all cores of this machine.
        memory: heap of the driver, which in local mode does all the work. It has an effect only on a JVM that is
            started here.

    Raises:
        EngineUnavailableError: no PySpark, no Java, a Java that is too old, or a master that cannot be reached.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise EngineUnavailableError(
            f"Spark is not installed ({error}): pip install 'pyspark>=4.3,<4.4' 'pandas>=2.2,<3', {WITHOUT}"
        ) from error
    if SparkSession.getActiveSession() is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
        # The JVM is a notebook's, a test's or spark-submit's own, and its settings were given there.
        return SparkSession.builder.getOrCreate()
    check_java()
    _environment(local_cores(master or "local[*]") is not None)
    return _start(master or "local[*]", memory)


def settings(master: str, memory: str) -> dict[str, str]:
    """List the settings of a session that is started here."""
    chosen = {
        "spark.driver.memory": memory,
        # An audit is too short for a concurrent collector to pay; this one leaves the processors to the join.
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
    """Count the cores that a local master uses; None for a cluster."""
    match = _LOCAL.fullmatch(master)
    if match is None:
        return None
    return len(os.sched_getaffinity(0)) if match[1] == "*" else int(match[1] or 1)


def check_java(environ: Mapping[str, str] = os.environ) -> None:
    """Check that the Java that Spark will use exists and is new enough.

    Raises:
        EngineUnavailableError: there is no Java, or it is too old.
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
    """Set the variables that Spark reads only from the environment, unless the user has set them."""
    # Workers would otherwise run the first python3 of the PATH, which may lack pyarrow or this package.
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
    """Give a JVM that starts meanwhile an unnamed file as its standard error for its whole life."""
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
    """Pick the most telling line of the JVM's standard error, else of the error."""
    noise.seek(0)
    lines = [line.strip() for line in noise.read(1 << 20).decode("utf-8", "replace").splitlines()]
    causes = [line for line in lines if "Exception" in line or line.startswith("Error")]
    return (causes or str(error).strip().splitlines() or [type(error).__name__])[0][:300]
