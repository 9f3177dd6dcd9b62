"""What this machine can run: which Java, browser and memory there is, and where the shared folder of data lies.

Owns the questions only; who asks decides what a missing thing means (``tools/test`` leaves tests out, the demo takes
the local engine).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

OLDEST_JAVA = 17
ROOT = Path(__file__).resolve().parent.parent
_IN_MEMORY = "/dev/shm"

_VERSION = re.compile(r'version "(?:1\.)?(\d+)')


def java_command() -> str | None:
    """The Java that Spark would start: ``$JAVA_HOME/bin/java`` where that is set, else ``java`` on the PATH."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which(os.path.join(home, "bin", "java") if home else "java")


def java_version() -> int | None:
    """The feature release of that Java (17 for "17.0.9", 8 for "1.8.0"); None where none answers."""
    command = java_command()
    if command is None:
        return None
    try:
        answer = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _VERSION.search(answer.stderr + answer.stdout)
    return int(found[1]) if answer.returncode == 0 and found else None


def why_no_java() -> str | None:
    """None where Java is new enough for Spark, else one clause that says what is wrong."""
    version = java_version()
    if version is None:
        return f"no Java was found; {OLDEST_JAVA} or newer is needed"
    if version < OLDEST_JAVA:
        return f"Java {version} was found; {OLDEST_JAVA} or newer is needed"
    return None


def chromium_command() -> str | None:
    """The Chromium on the PATH; None where there is none."""
    return shutil.which("chromium")


def why_no_chromium() -> str | None:
    """None where the page of an audit can be opened in a browser, else one clause that says what is missing."""
    return None if chromium_command() else "no Chromium was found; Debian's package is chromium"


def memory_folder(least_bytes: int) -> str | None:
    """A file system in memory with so many bytes free, where the machine has them to spare; None: there is none."""
    try:
        status, lines = os.statvfs(_IN_MEMORY), Path("/proc/meminfo").read_text().splitlines()
        mounted = Path("/proc/mounts").read_text().splitlines()
    except OSError:
        return None
    available = next((1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")), 0)
    is_memory = any(line.split()[1:3] == [_IN_MEMORY, "tmpfs"] for line in mounted)
    free = min(available, status.f_bavail * status.f_frsize)
    return _IN_MEMORY if is_memory and free >= least_bytes and os.access(_IN_MEMORY, os.W_OK) else None


def shared_folder() -> Path | None:
    """The folder of golden vectors and real log dirs: ``$LOGSTORE_SHARED``, else ``shared`` beside the repository."""
    folder = Path(os.environ.get("LOGSTORE_SHARED") or ROOT.parent / "shared")
    return folder if (folder / "kafka" / "golden").is_dir() else None
