"""Puts small mistakes into a copy of the code, one at a time, and says who notices; ``tools/mutate`` starts it.

The mistakes are patches in ``tools/mutations``, in the folder of the package that they change. Their first lines say in
words what is wrong; where nobody can notice it, ``Changes nothing:`` and the reason follow. Each patch is applied to a
copy of the tree, never to the tree itself. In the copy the soak plays its seeds up to the first broken promise, and the
tests of the changed package run up to the first failure, with further tests that its mistakes may show in. What does
not end in time counts as noticed: the mistake made it hang.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

from tools.machine import ROOT, shared_folder
from tools.run_tests import NEEDS_JVM

PATCHES: Final = ROOT / "tools" / "mutations"
NOT_COPIED: Final = (".git", ".venv", ".*_cache", ".hypothesis")

SOAK: Final = ("-m", "tools.soak_run", "--jobs", "1")
BROKEN_PROMISE: Final = re.compile(r"(seed \d+), ")
"""How the soak reports a seed that breaks a promise."""

TESTS: Final = ("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", f"not ({' or '.join(NEEDS_JVM)})")
FAILED_TEST: Final = re.compile(r"(?:FAILED|ERROR) (\S.*?)(?: - .*)?$")
"""How pytest lists a test that failed."""

FURTHER_TESTS: Final[Mapping[str, tuple[str, ...]]] = {
    "layout": ("tests/golden", "tests/upstream"),
    "layout/ours": ("tests/logstore/log_dir", "tests/logstore/staging"),
    "logstore/fs": ("tests/crash", "tests/logstore/log_dir", "tests/logstore/staging", "tests/logstore/store"),
    "logstore/log_dir": ("tests/logstore/staging", "tests/logstore/purge", "tests/crash", "tests/logstore/store"),
    "logstore/staging": ("tests/logstore/store", "tests/crash"),
    "logstore/purge": ("tests/crash/test_purge_crash.py",),
    "logstore/journal": ("tests/logstore/namespaces", "tests/crash/test_namespace_crash.py"),
    "logstore/namespaces": ("tests/crash/test_namespace_crash.py", "tests/crash/test_convert_crash.py"),
    "logstore/repair": ("tests/reconciler/plan", "tests/crash/test_repair_crash.py"),
    "logstore/store": ("tests/crash",),
    "reconciler/broker": (
        "tests/crash/test_requests_crash.py",
        "tests/reconciler/cli/commands/test_reconcile_command.py",
    ),
    "reconciler/plan": ("tests/reconciler/cli/commands/test_apply_command.py",),
    "reconciler/protocol": ("tests/upstream", "tests/golden/test_requests_golden.py", "tests/reconciler/sources"),
    "reconciler/sources": ("tests/golden", "tests/upstream"),
    "reconciler/simulator": ("tests/reconciler/simulator",),
}
"""Package → tests beside those in its own folder that a mistake in it, or in a package within it, may show in."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """One small mistake.

    Attributes:
        name: the package that it changes and what it does wrong, which is the path of its patch without the suffix.
        patch: the file.
        words: what is wrong, one sentence.
        reason: why nobody can notice it; empty: somebody should.
        files: that it changes, as paths below the repository.
    """

    name: str
    patch: Path
    words: str
    reason: str
    files: tuple[str, ...]

    @classmethod
    def read(cls, patch: Path, folder: Path) -> Mutation:
        """Read a patch below a folder."""
        text = patch.read_text(encoding="utf-8")
        words, _, reason = text.partition("\n--- ")[0].partition("Changes nothing: ")
        files = tuple(re.findall(r"^\+\+\+ b/(\S+)$", text, re.MULTILINE))
        name = str(patch.relative_to(folder).with_suffix(""))
        return cls(name, patch, " ".join(words.split()), " ".join(reason.split()), files)

    @property
    def tests(self) -> list[list[str]]:
        """The tests that may notice it, as paths below the repository, in rounds: the likeliest first.

        These are the modules of tests that are named after what it changes, then all of its packages, then the further
        ones.
        """
        named, own, further = list[Path](), list[Path](), list[Path]()
        for file in map(Path, self.files):
            home = ROOT / "tests" / file.parent
            named += sorted(home.glob(f"test_*{file.stem}*.py"))
            own += [home] if file.parent.name != file.parts[0] else sorted(home.glob("test_*.py"))
            further += [ROOT / path for each in file.parents for path in FURTHER_TESTS.get(str(each), ())]
        rounds = ([str(each.relative_to(ROOT)) for each in dict.fromkeys(paths)] for paths in (named, own, further))
        return [each for each in rounds if each]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Who noticed a mutation: the seed and the test; empty: nobody did; None: nobody was asked."""

    soak: str | None
    tests: str | None


def read_mutations(patterns: Sequence[str]) -> list[Mutation]:
    """Read the patches whose names match a pattern, or begin with it; all where there is no pattern."""
    every = (Mutation.read(each, PATCHES) for each in sorted(PATCHES.rglob("*.patch")))
    return [
        each
        for each in every
        if not patterns or any(fnmatch(each.name, wanted) or fnmatch(each.name, f"{wanted}*") for wanted in patterns)
    ]


def apply_patches(patches: Iterable[Path], tree: Path, *, check: bool = False) -> str:
    """Apply patches to a tree, or only ``check`` each by itself; gives what ``git apply`` has against them."""
    # The tree need not be a repository; one that lies around it must not be asked, for it would pass over the files.
    environment = os.environ | {"GIT_CEILING_DIRECTORIES": str(tree.parent)}
    command = ["git", "apply", *(["--check"] if check else []), *map(str, patches)]
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else ""


class WorkTree:
    """A copy of the tree, in which one mutation at a time is tried."""

    def __init__(self, folder: Path) -> None:
        """Copy the tree into a folder that does not exist."""
        self.path = folder
        shutil.copytree(ROOT, folder, symlinks=True, ignore=shutil.ignore_patterns(*NOT_COPIED))
        (folder / ".venv").symlink_to(ROOT / ".venv")
        self._environment = os.environ | {"PYTHONPATH": str(folder)}
        if (shared := shared_folder()) is not None:
            self._environment["LOGSTORE_SHARED"] = str(shared)

    def judge(self, mutation: Mutation, options: argparse.Namespace) -> Verdict:
        """Apply a mutation, ask soak and tests, and take it back."""
        before = {each: (self.path / each).read_bytes() for each in mutation.files}
        problem = apply_patches([mutation.patch], self.path)
        assert not problem, "every patch was checked before"
        try:
            self._forget_bytecode(before)
            soak = tests = None
            if options.only != "tests":
                play = (*SOAK, "--seeds", str(options.seeds), "--steps", str(options.steps))
                soak = self.first_sign(play, BROKEN_PROMISE, 60 * options.soak_minutes)
            if options.only != "soak":
                for chosen in [[]] if options.whole else mutation.tests:
                    run = (*TESTS, f"--basetemp={self.path}.tests", *chosen)
                    tests = self.first_sign(run, FAILED_TEST, 60 * options.tests_minutes)
                    if tests:
                        break
            return Verdict(soak, tests)
        finally:
            for file, data in before.items():
                (self.path / file).write_bytes(data)
            self._forget_bytecode(before)

    def first_sign(self, arguments: Sequence[str], sign: re.Pattern[str], seconds: float) -> str:
        """Run Python here until it prints a sign that something is wrong; gives the sign; empty: it ended well."""
        running = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=self.path,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
        late = threading.Event()

        def end() -> None:
            late.set()
            _kill(running.pid)

        timer = threading.Timer(seconds, end)
        timer.start()
        line = ""
        try:
            assert running.stdout is not None, "it is a pipe"
            for each in running.stdout:
                line = each.strip() or line
                if (found := sign.match(each)) is not None:
                    return found[1]
        finally:
            timer.cancel()
            _kill(running.pid)
            code = running.wait()
        if late.is_set():
            return f"no end after {seconds / 60:g} minutes"
        return f"exit code {code}: {line:.100}" if code else ""

    def _forget_bytecode(self, files: Iterable[str]) -> None:
        """Two changes of one length within a second would share what Python has compiled."""
        for file in files:
            Path(importlib.util.cache_from_source(str(self.path / file))).unlink(missing_ok=True)


def _kill(process: int) -> None:
    """End a process and all that it started; nothing happens when they are gone."""
    try:
        os.killpg(process, signal.SIGKILL)
    except ProcessLookupError:
        return


def main(argv: Sequence[str] | None = None) -> int:
    """Try the mutations. Exit code 1: fewer were noticed than wanted; 2: a patch does not apply."""
    options = _options(argv)
    mutations = read_mutations(options.names)
    if not mutations:
        print(f"no patch below {PATCHES} is named so: {', '.join(options.names)}", file=sys.stderr)
        return 2
    if problem := apply_patches((each.patch for each in mutations), ROOT, check=True):
        print(f"{problem}write these patches anew for the code of today", file=sys.stderr)
        return 2
    verdicts = list[Verdict]()
    with tempfile.TemporaryDirectory(prefix="mutate.") as folder, ThreadPoolExecutor(options.jobs) as pool:
        free = queue.SimpleQueue[WorkTree]()
        for number in range(min(options.jobs, len(mutations))):
            free.put(WorkTree(Path(folder, str(number))))

        def judge(mutation: Mutation) -> Verdict:
            tree = free.get()
            try:
                return tree.judge(mutation, options)
            finally:
                free.put(tree)

        for mutation, verdict in zip(mutations, pool.map(judge, mutations), strict=True):
            verdicts.append(verdict)
            print(_line(mutation, verdict), flush=True)
    return _sum_up(mutations, verdicts, {"soak": options.soak_at_least, "tests": options.tests_at_least})


def _line(mutation: Mutation, verdict: Verdict) -> str:
    said = [f"{who}: {found or 'SURVIVED'}" for who, found in _asked(verdict).items()]
    return f"{mutation.name}: {', '.join(said)}" + (f" (changes nothing: {mutation.reason})" if mutation.reason else "")


def _asked(verdict: Verdict) -> dict[str, str]:
    pairs = {"soak": verdict.soak, "tests": verdict.tests}
    return {who: found for who, found in pairs.items() if found is not None}


def _sum_up(mutations: Sequence[Mutation], verdicts: Sequence[Verdict], least: Mapping[str, float]) -> int:
    """Print how many were noticed, of those that somebody can notice; gives the exit code."""
    counted = [_asked(verdict) for mutation, verdict in zip(mutations, verdicts, strict=True) if not mutation.reason]
    print(f"{len(mutations)} mutations, of which {len(mutations) - len(counted)} change nothing")
    code = 0
    for who, wanted in least.items():
        asked = [each[who] for each in counted if who in each]
        if asked:
            share = 100 * sum(map(bool, asked)) / len(asked)
            print(f"{who}: {sum(map(bool, asked))} of {len(asked)} noticed, {share:.1f} % ({wanted:g} % are wanted)")
            code = max(code, int(share < wanted))
    return code


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "tools/mutate", description="Puts small mistakes into a copy of the code, and says who notices."
    )
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help="mutations, by the beginnings of their names or patterns [all]")
    add("--only", choices=("soak", "tests"), help="ask only these [both]")
    add("--whole", action="store_true", help="run all tests that need no JVM, not those of the changed package")
    add("--seeds", type=int, default=100, metavar="N", help="seeds of the soak [100]")
    add("--steps", type=int, default=200, metavar="N", help="steps of each seed [200]")
    add("--jobs", type=int, default=2, metavar="N", help="mutations at the same time [2]")
    add("--soak-minutes", type=float, default=30, metavar="N", help="after which the soak is ended [30]")
    add("--tests-minutes", type=float, default=30, metavar="N", help="after which the tests are ended [30]")
    add("--soak-at-least", type=float, default=90, metavar="PERCENT", help="that the soak is to notice [90]")
    add("--tests-at-least", type=float, default=98, metavar="PERCENT", help="that the tests are to notice [98]")
    options = parser.parse_args(argv)
    if min(options.seeds, options.jobs, options.soak_minutes, options.tests_minutes) <= 0 or options.steps < 0:
        parser.error("numbers want to be positive")
    return options


if __name__ == "__main__":
    sys.exit(main())
