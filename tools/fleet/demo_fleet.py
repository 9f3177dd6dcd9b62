"""The demo: builds the sample fleet, audits it with both engines, and holds their findings against what was planted.

Then it cures one broker, as a user would: a plan, its application, and an audit that is clean.

``tools/demo [FOLDER]`` starts it. It runs the command line as a user would, in its own processes, and judges the files
that the command line leaves behind. Where there is no Java it says so and leaves Spark out.
"""

from __future__ import annotations

import argparse
import glob
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow.dataset as ds

from reconciler.verdicts import BENIGN, Verdict
from tools.fleet.sample_check import differences
from tools.fleet.sample_fleet import Truth, build
from tools.machine import why_no_java

LOGSTORE = os.path.join(os.path.dirname(sys.executable), "logstore")
LOG_DIRS = "broker-*/disk-?"
"""As a shell would find them: all the log dirs, the unmounted one too, and none of the staging directories."""

FINDINGS, SUMMARY, REPORT = "findings.parquet", "summary.json", "report.html"
FINDINGS_EXIT = 1
"""Exit code of an audit that found something (DESIGN §9)."""


@dataclass(frozen=True, slots=True)
class Audit:
    """One run of ``logstore audit``: where the fleet is, where the outputs go, and what else was asked for."""

    fleet: str
    metadata: str
    out: str
    options: tuple[str, ...] = ()

    def arguments(self) -> list[str]:
        """The command line, with the log dirs in full."""
        return [LOGSTORE, "audit", *sorted(glob.glob(f"{glob.escape(self.fleet)}/{LOG_DIRS}")), *self._rest()]

    def shown(self) -> str:
        """The same as a person would type it."""
        return " ".join(("logstore audit", f"{shlex.quote(self.fleet)}/{LOG_DIRS}", *map(shlex.quote, self._rest())))

    def _rest(self) -> tuple[str, ...]:
        return ("--metadata", self.metadata, "--report", self.out, *self.options)


def main(arguments: Sequence[str]) -> int:
    """Run the demo; 0 when every engine that ran found exactly what was planted, 2 for a folder that cannot be used."""
    parser = argparse.ArgumentParser(prog="tools/demo", description="Builds a fleet with damaged disks and audits it.")
    parser.add_argument("folder", nargs="?", help="where to build it: empty or not there yet; default: a temporary one")
    given = parser.parse_args(arguments).folder
    folder = os.path.abspath(given) if given else tempfile.mkdtemp(prefix="logstore-demo-")
    fleet = os.path.join(folder, "fleet")
    try:
        truth = build(fleet, now_ms=time.time_ns() // 1_000_000)
    except OSError as error:
        print(f"tools/demo: {error}\nGive a folder that is empty or not there yet: tools/demo FOLDER", file=sys.stderr)
        return 2
    print(
        f"Built 12 brokers with {len(truth.log_dirs)} log dirs in {fleet}: {truth.ok} replicas are as they should be, "
        f"{_counted([planted.verdict for planted in truth.findings])} are planted.\n"
    )
    metadata = os.path.join(fleet, truth.metadata)
    embedded = Audit(fleet, metadata, os.path.join(folder, "embedded"))
    right = _run(embedded, truth, "embedded", show=True)
    if reason := why_no_java():
        print(f"spark: left out, because {reason}; the embedded engine gives the same findings")
    else:
        spark = Audit(fleet, metadata, os.path.join(folder, "spark"), ("--spark",))
        right = _run(spark, truth, "spark", show=False) and right
    if right and (right := _cure(embedded, truth)):
        _say_what_next(embedded, truth)
    return 0 if right else 1


def _run(audit: Audit, truth: Truth, engine: str, *, show: bool) -> bool:
    """Run one audit, and say in one line whether it found what was planted. ``show`` lets its table through."""
    print(f"$ {audit.shown()}", flush=True)
    started = time.monotonic()
    done = subprocess.run(
        audit.arguments(),
        stdin=subprocess.DEVNULL,
        stdout=None if show else subprocess.DEVNULL,
        stderr=None if show else subprocess.PIPE,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - started
    if done.returncode != FINDINGS_EXIT:
        print(done.stderr or "", file=sys.stderr)
        print(f"{engine}: the audit ended with exit code {done.returncode}, and {FINDINGS_EXIT} was expected")
        return False
    findings = ds.dataset(os.path.join(audit.out, FINDINGS), format="parquet").to_table().to_pylist()
    with open(os.path.join(audit.out, SUMMARY), encoding="utf-8") as file:
        fleet = [(entry["kind"], entry["subject"]) for entry in json.load(file)["fleet"]]
    wrong = differences(truth, audit.fleet, findings, fleet)
    counts = f"{_counted([row['verdict'] for row in findings])}, and {len(fleet)} of the fleet as a whole"
    verdict = "as planted" if not wrong else f"NOT as planted: {len(wrong)} differences"
    print("\n".join([f"{engine}: {counts}, {verdict} ({seconds:.1f} s)", *(f"  {line}" for line in wrong), ""]))
    return not wrong


def _counted(verdicts: Sequence[str]) -> str:
    """Count findings as the audit does: those to act on, and those that ask nobody to act."""
    to_act = sum(Verdict(verdict) not in BENIGN for verdict in verdicts)
    return f"{to_act} findings to act on, and {len(verdicts) - to_act} that ask nobody to act"


def _cure(audit: Audit, truth: Truth) -> bool:
    """Stage what nobody wants on the broker with nothing else to find, and say whether an audit of it is clean then."""
    broker = next(each.log_dir.split("/")[0] for each in truth.findings if each.verdict == Verdict.UNKNOWN_TOPIC)
    disks = sorted(glob.glob(f"{glob.escape(audit.fleet)}/{broker}/disk-?"))
    plan = os.path.join(os.path.dirname(audit.fleet), "plan.json")
    for expected, verb, given, options in (
        (FINDINGS_EXIT, "plan", disks, ("--metadata", audit.metadata, "-o", plan)),
        (0, "apply", [plan], ()),
        (0, "audit", disks, ("--metadata", audit.metadata)),
    ):
        shown = [f"{shlex.quote(audit.fleet)}/{broker}/disk-?"] if given is disks else map(shlex.quote, given)
        print("$", " ".join(("logstore", verb, *shown, *map(shlex.quote, options))), flush=True)
        ran = subprocess.run(
            [LOGSTORE, verb, *given, *options], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False
        )
        if ran.returncode != expected:
            print(ran.stderr, file=sys.stderr)
            print(f"cure: {verb} ended with exit code {ran.returncode}, and {expected} was expected")
            return False
        print()
    print(f"cure: {broker} is clean; what was staged can come back until it is purged\n")
    return True


def _say_what_next(audit: Audit, truth: Truth) -> None:
    """Name the outputs, and commands to try on the fleet."""
    print(f"Findings are in {audit.out}/{FINDINGS}, the summary in {SUMMARY} and a page in {REPORT} beside it.\n")
    logstore, fleet, metadata = (shlex.quote(text) for text in (LOGSTORE, audit.fleet, audit.metadata))
    stale = next(planted for planted in truth.findings if planted.verdict == Verdict.STALE_ID)
    broker = stale.log_dir.split("/")[0]
    print("Try next:")
    print(f"  {logstore} doctor {fleet}/{broker}/disk-? --metadata {metadata}")
    print(f"  {logstore} explain {fleet}/{stale.log_dir}/{stale.name} --metadata {metadata}")
    print(f"  {logstore} scan {fleet}/{stale.log_dir}")
    print(f"  {logstore} audit {fleet}/{LOG_DIRS} --metadata {metadata} --verdict STRAY --format json")
    print(f"  {logstore} help")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
