"""Brings a release's jars by Maven, once, and remembers their class path.

Maven keeps the jars in its own repository. What lies here, below ``.venv/real-broker/<version>``, is the pom that was
asked for, the class path that came of it, and what the JVMs share to start sooner. A class path holds as long as the
pom is the same and every jar of it is there, so that a second start asks neither Maven nor the network.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tools.machine import ROOT, why_no_java
from tools.real_broker.errors import FetchError
from tools.real_broker.releases import Release

SECONDS_TO_RESOLVE = 900
PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:build-classpath"
LINES_SHOWN = 12

_NOT_NEEDED = ("connect-runtime", "connect-api", "connect-json", "connect-transforms")
"""What ``kafka-tools`` brings for commands that nothing here runs: a web server and its sixty jars."""


def cache_folder() -> Path:
    """The folder of class paths; it goes with the environment, and is made anew from Maven's own repository."""
    return ROOT / ".venv" / "real-broker"


def release_folder(release: Release) -> Path:
    """The folder of one release in the cache."""
    return cache_folder() / release.version


def pom(release: Release) -> str:
    """The Maven project whose dependencies are a broker of this release with its commands."""
    wanted = [f"org.apache.kafka:kafka_2.13:{release.version}", *release.binding]
    if release.tools:
        wanted.append(f"org.apache.kafka:kafka-tools:{release.version}")
    return (
        "<project><modelVersion>4.0.0</modelVersion>"
        f"<groupId>real.broker</groupId><artifactId>kafka</artifactId><version>{release.version}</version>"
        f"<packaging>pom</packaging>\n<dependencies>\n{''.join(map(_dependency, wanted))}</dependencies></project>\n"
    )


def _dependency(coordinates: str) -> str:
    group, artifact, version = coordinates.split(":")
    left_out = ""
    if artifact == "kafka-tools":
        left_out = "".join(
            f"<exclusion><groupId>{group}</groupId><artifactId>{name}</artifactId></exclusion>" for name in _NOT_NEEDED
        )
    exclusions = f"<exclusions>{left_out}</exclusions>" if left_out else ""
    return (
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{version}</version>{exclusions}</dependency>\n"
    )


def known_class_path(release: Release) -> str | None:
    """The class path of an earlier :func:`class_path`; None: there is none, or one of its jars is gone."""
    folder = release_folder(release)
    try:
        if (folder / "pom.xml").read_text(encoding="utf-8") != pom(release):
            return None
        found = (folder / "classpath").read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    return found if found and all(map(os.path.isfile, found.split(os.pathsep))) else None


def why_not(release: Release) -> str | None:
    """None if this release can be had, as far as is known without the network; otherwise a clause that says why not."""
    if no_java := why_no_java():
        return no_java
    if known_class_path(release) is None and shutil.which("mvn") is None:
        return f"Kafka {release.version} was not fetched yet and no mvn is on the path, which would fetch it"
    return None


def class_path(release: Release) -> str:
    """All jars of a release, as ``java -cp`` takes them; asks Maven where they are not known yet.

    Raises:
        FetchError: without Java or Maven, or when Maven fails, with the last lines that it wrote.
    """
    if reason := why_not(release):
        raise FetchError(f"{reason}; install it, then run tools/real-broker fetch")
    return known_class_path(release) or _resolve(release)


def _resolve(release: Release) -> str:
    folder = release_folder(release)
    folder.mkdir(parents=True, exist_ok=True)
    project, answer = folder / f"pom.{os.getpid()}.xml", folder / f"classpath.{os.getpid()}"
    project.write_text(pom(release), encoding="utf-8")
    command = ["mvn", "-B", "-q", "-f", str(project), PLUGIN, f"-Dmdep.outputFile={answer}"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS_TO_RESOLVE, check=False, stdin=subprocess.DEVNULL
        )
        if done.returncode != 0 or not answer.is_file():
            lines = "\n".join((done.stdout + done.stderr).strip().splitlines()[:LINES_SHOWN])
            raise FetchError(
                f"Maven could not resolve Kafka {release.version}:\n{lines}\n"
                "Look whether Maven's repository can be reached, then run tools/real-broker fetch again."
            )
        found = answer.read_text(encoding="utf-8").strip()
        answer.write_text(found, encoding="utf-8")
        for archive in folder.glob("*.jsa"):
            archive.unlink()
        answer.replace(folder / "classpath")
        project.replace(folder / "pom.xml")
    except subprocess.TimeoutExpired:
        raise FetchError(
            f"Maven did not resolve Kafka {release.version} within {SECONDS_TO_RESOLVE} s; "
            "look whether its repository can be reached, then run tools/real-broker fetch again"
        ) from None
    finally:
        project.unlink(missing_ok=True)
        answer.unlink(missing_ok=True)
    return found
