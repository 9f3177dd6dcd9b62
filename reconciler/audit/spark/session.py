"""Starts Spark with the settings that this project needs, or says in one sentence why it cannot.

Checks first that PySpark is installed and that there is a Java that is new enough. A running session (a notebook's,
say) is taken as it is, and goes on afterwards. The settings avoid traps that are explained beside them, and leave alone
what the user has set for Spark. PySpark is imported only when a session is asked for.
"""

from __future__ import annotations

import argparse
import logging
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from threading import Timer
from typing import TYPE_CHECKING, BinaryIO

from reconciler.audit.spark.interrupts import cancelled_by_signals
from reconciler.errors import EngineUnavailableError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

OLDEST_JAVA = 17
"""Spark 4 needs at least this release."""

WITHOUT = "or leave out --spark: the embedded audit needs neither"

_PARTITIONS_PER_CORE = 4
_MASTER, _MEMORY = "spark.master", "spark.driver.memory"
_HERE = "local[*]"
_LOCAL = re.compile(r"local(?:\[(\*|\d+)(?:,\s*\d+)?\])?")
_STANDALONE, _CONNECT = "spark://", "sc://"
_CONNECT_PORT = 15002
_REMOTE = "SPARK_REMOTE"
_ANSWERS_WITHIN_S = 10
_EXECUTORS_WITHIN_S = 30
_CAUSED, _UNCAUGHT = "Caused by: ", 'Exception in thread "main" '
_JAVA_VERSION = re.compile(r'version "(?:1\.)?(\d+)')


@contextmanager
def open_session(master: str | None = None, *, memory: str | None = None) -> Iterator[SparkSession]:
    """Provide the running session, which stays as it is, or one that is started here and stopped at the end.

    Where ``SPARK_REMOTE`` names a Spark Connect server, the session is one of its. What the user has set for Spark
    (``spark-defaults.conf``, ``PYSPARK_SUBMIT_ARGS``) holds; only what is given here goes before it.

    Args:
        master: in Spark's notation; None: the user's own, else all cores of this machine.
        memory: heap of the driver in Spark's notation, such as ``3g``, which in local mode does all the work; None: the
            user's own, else 3g.

    Raises:
        EngineUnavailableError: no PySpark, no Java, a Java that is too old, or a master that cannot be reached.
        UsageError: memory or a master is given, and the JVM runs already, or a server has its own.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise EngineUnavailableError(
            f"Spark is not installed ({error}): pip install 'pyspark>=4.3,<4.4' 'pandas>=2.2,<3', {WITHOUT}"
        ) from error
    running = _running()
    submitted, remote = "PYSPARK_GATEWAY_PORT" in os.environ, os.environ.get(_REMOTE)
    if memory is not None and (running is not None or submitted or remote is not None):
        raise UsageError("the heap of a JVM that runs cannot be changed: give spark-submit --driver-memory instead")
    if running is not None:
        yield running
        return
    if master is not None and submitted:
        raise UsageError(
            f"--master {master} comes too late for a job of spark-submit: give spark-submit --master instead"
        )
    if remote is not None:
        with _connected(remote, master) as spark:
            yield spark
        return
    user = user_settings()
    chosen = master or user.get(_MASTER, _HERE)
    if submitted:
        # The JVM is spark-submit's own, and its settings were given there.
        spark = SparkSession.builder.getOrCreate()
    else:
        check_java()
        check_master(chosen)
        spark = _start(settings(master, memory, user), chosen)
    alone = Timer(_EXECUTORS_WITHIN_S, warn_without_executors, [spark])
    alone.daemon = True
    if not submitted and local_cores(chosen) is None:
        alone.start()
    try:
        with cancelled_by_signals(spark):
            yield spark
    finally:
        alone.cancel()
        spark.stop()


def _running() -> SparkSession | None:
    """Return the session that its owner made, where an audit made others from it."""
    from pyspark.sql import SparkSession
    from pyspark.sql.utils import is_remote

    try:
        running = SparkSession.getActiveSession()
    except ImportError as error:
        raise _without_connect(error) from error
    return running if running is None or is_remote() else SparkSession.builder.getOrCreate()


@contextmanager
def _connected(remote: str, master: str | None) -> Iterator[SparkSession]:
    """Provide a session of the Spark Connect server that ``SPARK_REMOTE`` names."""
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    if master is not None:
        raise UsageError(f"--master {master} does not go with {_REMOTE}={remote}, whose server has its own")
    if remote.startswith(_CONNECT):
        host, _, port = remote.removeprefix(_CONNECT).split("/")[0].partition(":")
        check_answers(
            [f"{host}:{port or _CONNECT_PORT}"], "Spark Connect server", f"set {_REMOTE} to its sc:// address"
        )
    try:
        spark = SparkSession.builder.getOrCreate()
    except ImportError as error:
        raise _without_connect(error) from error
    except (PySparkException, OSError, RuntimeError) as error:
        raise EngineUnavailableError(
            f"{_REMOTE}={remote} gives no session: {str(error).splitlines()[0]:.300}"
        ) from error
    try:
        yield spark
    finally:
        spark.stop()


def _without_connect(error: ImportError) -> EngineUnavailableError:
    needs = "pip install 'pyspark[connect]>=4.3,<4.4' 'pandas>=2.2,<3'"
    return EngineUnavailableError(f"Spark Connect lacks packages ({error}): {needs}, or unset {_REMOTE}")


def settings(master: str | None, memory: str | None, user: Mapping[str, str]) -> dict[str, str]:
    """List the settings of a session that is started here; ``user``: what the user has set, which is left alone."""
    given = {_MASTER: master, _MEMORY: memory}
    asked = {name: value for name, value in given.items() if value is not None}
    chosen = {
        _MASTER: _HERE,
        _MEMORY: "3g",
        "spark.app.name": "logstore-audit",
        # An audit is too short for a concurrent collector to pay; this one leaves the processors to the join.
        "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # A Python task costs 40 ms over loopback TCP and 5 ms over a socket in the file system.
        "spark.python.unix.domain.socket.enabled": "true",
    }
    cores = local_cores(master or user.get(_MASTER, _HERE))
    if cores is not None:
        # Where the host's name resolves to loopback, Spark would bind another interface and not find itself.
        chosen |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.shuffle.partitions": str(cores * _PARTITIONS_PER_CORE),
        }
    return {name: value for name, value in chosen.items() if name not in user} | asked


def user_settings(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Read what the user has set for Spark: ``spark-defaults.conf``, and over it ``PYSPARK_SUBMIT_ARGS``."""
    found: dict[str, str] = {}
    try:
        with open(_defaults_file(environ), encoding="utf-8", errors="replace") as lines:
            for line in lines:
                words = re.split(r"[\s=:]+", line.strip(), maxsplit=1)
                if words[0].startswith("spark.") and len(words) == 2:
                    found[words[0]] = words[1]
    except OSError:
        pass  # most users have no such file
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--master", dest=_MASTER, default=argparse.SUPPRESS)
    parser.add_argument("--driver-memory", dest=_MEMORY, default=argparse.SUPPRESS)
    parser.add_argument("--name", dest="spark.app.name", default=argparse.SUPPRESS)
    parser.add_argument("--conf", "-c", action="append", default=[])
    known = vars(parser.parse_known_args(shlex.split(environ.get("PYSPARK_SUBMIT_ARGS", "")))[0])
    found |= {name: value for name, _, value in (pair.partition("=") for pair in known.pop("conf"))}
    return found | known


def _defaults_file(environ: Mapping[str, str]) -> str:
    found = find_spec("pyspark")
    home = environ.get("SPARK_HOME") or os.path.dirname((found and found.origin) or "")
    return os.path.join(environ.get("SPARK_CONF_DIR") or os.path.join(home, "conf"), "spark-defaults.conf")


def runs_on_cluster(master: str | None, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether a session may have executors on other machines, as far as is known before it is there.

    ``master``: what was asked for; None: what the user has set for Spark counts. What spark-submit has chosen is known
    only afterwards.
    """
    if "PYSPARK_GATEWAY_PORT" in environ:
        return True
    if _REMOTE in environ:
        return environ[_REMOTE].startswith(_CONNECT)
    return local_cores(master or user_settings(environ).get(_MASTER, _HERE)) is None


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


def check_master(master: str) -> None:
    """Check that a standalone master answers at its address, which Spark would call for minutes; others pass.

    Raises:
        EngineUnavailableError: none of the addresses answers, or one is none.
    """
    if master.startswith(_STANDALONE):
        addresses = master.removeprefix(_STANDALONE).split(",")
        check_answers(addresses, "Spark master", "give the spark:// address that its log and its page show")


def check_answers(addresses: Sequence[str], what: str, advice: str) -> None:
    """Check that one of the addresses ``HOST:PORT`` takes a connection.

    Raises:
        EngineUnavailableError: none does, or one is no address.
    """
    refused = []
    for address in addresses:
        host, _, port = address.rpartition(":")
        if not host or not port.isascii() or not port.isdigit():
            raise EngineUnavailableError(f"{address} is no address of a {what}: HOST:PORT is expected")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _ANSWERS_WITHIN_S).close()
            return
        except (OSError, OverflowError, UnicodeError) as error:
            refused.append(f"{address} ({getattr(error, 'strerror', None) or error})")
    raise EngineUnavailableError(f"no {what} answers at {', '.join(refused)}: {advice}, {WITHOUT}")


def warn_without_executors(spark: SparkSession) -> None:
    """Log a warning where a cluster has not given an executor yet: Spark waits for one, and says nothing."""
    context = spark.sparkContext
    if context._jsc.sc().getExecutorMemoryStatus().size() > 1:  # the driver is one of them
        return
    memory = context.getConf().get("spark.executor.memory", "1g")
    logger.warning(
        "%s has given no executor yet, and Spark waits: its workers are busy, or none has the %s that "
        "spark.executor.memory asks for, or the cores of spark.executor.cores",
        context.master,
        memory,
    )


def _environment(local: bool) -> None:
    """Set the variables that Spark reads only from the environment, unless the user has set them."""
    # Workers would otherwise run the first python3 of the PATH, which may lack pyarrow or this package.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")


def _start(chosen: Mapping[str, str], master: str) -> SparkSession:
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    _environment(local_cores(master) is not None)
    builder = SparkSession.builder
    for name, value in chosen.items():
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
    """Pick an exception and what it rests on from the JVM's standard error, else from the error."""
    noise.seek(0)
    lines = [line.strip() for line in noise.read(1 << 20).decode("utf-8", "replace").splitlines()]
    shown = [line for line in lines if "Exception" in line or line.startswith("Error")]
    first = (shown or str(error).strip().splitlines() or [type(error).__name__])[0]
    cause = next((f" ({line.removeprefix(_CAUSED)})" for line in shown if line.startswith(_CAUSED)), "")
    return f"{first.removeprefix(_UNCAUGHT):.300}{cause:.300}"
