"""Runs pytest in three rounds, after saying which suites cannot run here and why; ``tools/test`` starts it.

The first round takes the suites that share nothing, on two processes, of which one that is done takes over what waits
for the other. The second takes Spark and ZooKeeper in one process, because each JVM fills a core by itself. The third
takes real brokers and the browser, file by file on two processes: brokers wait for each other most of the time, and the
tests of one file share a browser.

The first round's folders lie in memory where there is enough of it: on a disk, these tests wait for it three quarters
of their time. What only a disk can show is in the third round, and on the file systems that the tests of power cuts
mount. A test that never ends fails, and where its threads stand is shown. With ``LOGSTORE_NO_SKIPS=1`` whatever is left
out, by a marker or by a skip, is a failure, but for what is excepted with a reason.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from tempfile import TemporaryDirectory

from tools.machine import ROOT, memory_folder, shared_folder, why_no_chromium, why_no_java
from tools.real_broker import RELEASES, why_not

NO_SKIPS = "LOGSTORE_NO_SKIPS"
NEEDS_JVM = ("spark", "zookeeper", "broker", "java")
BY_FILE = ("broker", "browser")
EXCEPTED = {"root", "browser", "groff", "promtool", "systemd", "shells"}
"""Markers that may be left out all the same: no set-up gives root, and ``.ci/run`` installs the others where it may."""
IN_MEMORY_FROM = 8 << 30
"""Bytes of memory that must be free to keep the folders of the first round there; they grow to 3 GB."""
HANGS_AFTER_S = 1200
"""Seconds after which a test counts as one that never ends; the longest ones take a tenth of that on a slow machine."""
NOTHING_SELECTED = 5
"""pytest's exit code when no test was collected."""


def left_out() -> dict[str, str]:
    """Marker → why its tests cannot run on this machine."""
    reasons: dict[str, str] = {}
    if no_java := why_no_java():
        reasons |= dict.fromkeys(NEEDS_JVM, no_java)
    elif reason := next((why for release in RELEASES.values() if (why := why_not(release))), None):
        reasons["broker"] = reason
    if no_chromium := why_no_chromium():
        reasons["browser"] = no_chromium
    if shared_folder() is None:
        reasons |= dict.fromkeys(
            ("shared", "corpus"), "no shared folder beside the repository, and LOGSTORE_SHARED names none"
        )
    if shutil.which("groff") is None:
        reasons["groff"] = "groff is not installed"
    if shutil.which("systemd-analyze") is None:
        reasons["systemd"] = "systemd-analyze is not installed"
    if shutil.which("promtool") is None:
        reasons["promtool"] = "promtool is not installed; Debian's package prometheus has it"
    if missing := [shell for shell in ("zsh", "fish") if shutil.which(shell) is None]:
        reasons["shells"] = f"not installed: {' and '.join(missing)}"
    if os.geteuid() != 0:
        reasons["root"] = "not run by root"
    return reasons


def rounds(skipped: Sequence[str], asked: str, processes: Sequence[str]) -> list[list[str]]:
    """The pytest arguments of each round.

    ``asked`` is the caller's own ``-m`` expression; ``processes`` the caller's ``-n`` as arguments, or the default.
    """
    apart, by_file = " or ".join({**dict.fromkeys(NEEDS_JVM), **dict.fromkeys(BY_FILE)}), " or ".join(BY_FILE)
    others = " or ".join(marker for marker in NEEDS_JVM if marker not in BY_FILE)
    limits = [f"not {marker}" for marker in skipped] + ([f"({asked})"] if asked else [])
    first = ["-m", " and ".join([f"not ({apart})", *limits]), "--dist", "worksteal", *processes]
    second = ["-m", " and ".join([f"({others}) and not ({by_file})", *limits])]
    third = ["-m", " and ".join([f"({by_file})", *limits]), "--dist", "loadfile", *processes]
    found = [first] if set(NEEDS_JVM) <= set(skipped) else [first, second]
    return found if set(BY_FILE) <= set(skipped) else [*found, third]


def ending(seconds: float) -> list[str]:
    """The pytest arguments that end the process of a test that takes so long, and show where its threads stand."""
    return [f"--override-ini=faulthandler_{each}" for each in (f"timeout={seconds}", "exit_on_timeout=true")]


@contextmanager
def folders_in_memory(asked: Sequence[str]) -> Iterator[list[str]]:
    """The pytest argument that keeps the folders of tests in memory while this is entered.

    There is none where memory is short, or where the caller's own arguments say where they are to lie.
    """
    place = None if any(each.startswith("--basetemp") for each in asked) else memory_folder(IN_MEMORY_FROM)
    if place is None:
        yield []
        return
    with TemporaryDirectory(prefix="logstore-tests-", dir=place) as folder:
        yield [f"--basetemp={folder}/tests"]


def main(arguments: Sequence[str]) -> int:
    """Run the rounds and return pytest's exit code: the first that is neither success nor an empty selection."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-m", dest="asked", default="")
    parser.add_argument("-n", dest="processes", default="2")
    known, others = parser.parse_known_args(arguments)
    reasons = left_out()
    for marker, reason in reasons.items():
        print(f"left out: tests marked {marker} ({reason})", flush=True)
    strict = os.environ.get(NO_SKIPS) == "1"
    if strict and (missing := sorted(set(reasons) - EXCEPTED)):
        print(
            f"{NO_SKIPS}=1 lets nothing be left out, and these cannot run here: {', '.join(missing)}", file=sys.stderr
        )
        return 1
    plugins = ["-p", "tools.no_skips"] if strict else []
    codes: list[int] = []
    for selection in rounds(tuple(reasons), known.asked, ["-n", known.processes]):
        settings = ["--import-mode=importlib", *ending(HANGS_AFTER_S), *plugins]
        command = [sys.executable, "-m", "pytest", *settings, *selection, *others]
        with ExitStack() as stack:
            place = [] if codes else stack.enter_context(folders_in_memory(others))
            codes.append(subprocess.run([*command, *place], cwd=ROOT, check=False).returncode)
        if codes[-1] not in (0, NOTHING_SELECTED):
            return codes[-1]
    return min(codes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
