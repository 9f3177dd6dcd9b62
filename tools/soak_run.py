"""Plays histories of simulated clusters, seed after seed, on several processes; ``tools/soak`` starts it.

Each seed plays in one of the moods below, in turn; every second round of moods has KRaft's placement of replicas. If a
history breaks an invariant, the command that plays it again is printed, and the exit code is 1; at the end the first
history of each broken promise is shrunk to the least that still breaks it. What was run is counted at the end: seeds,
steps, events, faults, crashes and the states that they left disks in; and every operation, fault, verdict, answer and
way of recovery that was reached. With ``--every-path`` the exit code is 1 too when one was not reached that a thousand
seeds should reach.

With ``--hours`` the seeds are fresh, from the time of day, and all processors play. Ctrl-C ends it after the histories
that are being played, and what was seen until then is said; a second one ends it at once.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, replace

from logstore.parallel import processors
from reconciler.simulator.cluster import ClusterSettings
from reconciler.simulator.kernel import FaultRates
from reconciler.simulator.placement import Placement
from reconciler.simulator.runs import NOTHING, LeftOut, history_settings, shortest_failure, simulate, unreached

MOODS: Mapping[str, tuple[str, bool]] = {
    "a bad day": ("default", False),
    "a bad day, durable": ("default", True),
    "a bad network": ("default,loss=0.05,delay=0.1,double=0.2,reorder=0.2,partition=0.03", False),
    "bad machines": ("default,crash=0.03,power_cut=0.05,session=0.02,disk_offline=0.03,disk_full=0.03", False),
}
"""Name → the faults, and whether acknowledged means synced."""


_MANY_SEEDS = 1_000
"""The soak that reaches everything."""


@dataclass(frozen=True, slots=True)
class Played:
    """What became of one seed."""

    seed: int
    mood: str
    placement: Placement
    steps: int
    events: int
    reached: Mapping[str, int]
    broken: str | None
    promise: str = ""


def main(argv: Sequence[str] | None = None) -> int:
    """Play, tell of what fails, and count. Exit code 1 when a promise was broken, 130 when it was interrupted."""
    options = _options(argv)
    started, stop = time.monotonic(), threading.Event()
    played, failed = Counter[str](), list[Played]()
    reached = Counter[str]()
    end = None if options.minutes is None else started + 60 * options.minutes
    before = signal.signal(signal.SIGINT, lambda *_: _interrupted(stop))
    try:
        if options.hours is not None:
            print(f"seeds from {options.start} on, by {options.jobs} processes", flush=True)
        for each in _all_played(options, end, stop):
            played.update({"seeds": 1, "steps": each.steps, "events": each.events})
            reached.update(each.reached)
            if each.broken is not None:
                failed.append(each)
                _tell(each, options)
    finally:
        signal.signal(signal.SIGINT, before)
    for line in _summary(played, reached, failed, time.monotonic() - started):
        print(line)
    missed = unreached(reached)
    if missed:
        print(f"not reached, of what {_MANY_SEEDS:,} seeds should reach: {', '.join(missed)}")
    if not stop.is_set():
        _tell_shrunk(failed, options)
    if failed or (missed and options.every_path):
        return 1
    return 130 if stop.is_set() else 0


def _interrupted(stop: threading.Event) -> None:
    """End in order; the next Ctrl-C ends it at once."""
    stop.set()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    print("interrupted: what is being played is played to its end", file=sys.stderr, flush=True)


def _summary(
    played: Mapping[str, int], reached: Mapping[str, int], failed: Sequence[Played], seconds: float
) -> Iterator[str]:
    """Format what was run and what it came to."""
    events = played.get("events", 0)
    yield (
        f"{played.get('seeds', 0):,} seeds, {played.get('steps', 0):,} steps, {events:,} events in {seconds:.0f} s "
        f"({events / max(seconds, 1e-9):,.0f} events/s); {len(failed)} broke a promise"
    )
    faults = sum(times for what, times in reached.items() if what.startswith("fault "))
    yield (
        f"{faults:,} faults; {reached.get('crash machine', 0):,} crashes of machines, after which "
        f"{reached.get('crash disk', 0):,} disks had lost or kept what was not synced"
    )
    if failed:
        yield f"broken: seeds {', '.join(str(each.seed) for each in sorted(failed, key=lambda each: each.seed))}"
    yield from _table(reached)


def _table(reached: Mapping[str, int]) -> Iterator[str]:
    """Format how often each operation, fault, verdict, answer and way of recovery was reached, a line for each kind."""
    kinds: dict[str, list[str]] = {}
    for what, times in sorted(reached.items()):
        kind, _, name = what.partition(" ")
        kinds.setdefault(kind, []).append(f"{name} {times:,}")
    for kind, names in kinds.items():
        yield f"{kind}: {', '.join(names)}"


def play(work: tuple[int, int, int]) -> Played:
    """Play one seed: its number, how many steps, how many brokers."""
    seed, steps, brokers = work
    mood, placement = _manner(seed)
    outcome = simulate(seed, steps, _settings(seed, brokers))
    counts = outcome.steps, outcome.events, outcome.reached
    return Played(seed, mood, placement, *counts, outcome.broken, outcome.promise)


def _settings(seed: int, brokers: int) -> ClusterSettings:
    """The cluster of a seed."""
    mood, placement = _manner(seed)
    faults, durable = MOODS[mood]
    return history_settings(brokers, FaultRates.parse(faults), durable=durable, placement=placement)


def _manner(seed: int) -> tuple[str, Placement]:
    """The mood of a seed, and how its replicas are placed."""
    return list(MOODS)[seed % len(MOODS)], list(Placement)[seed // len(MOODS) % len(Placement)]


def _all_played(options: argparse.Namespace, end: float | None, stop: threading.Event) -> Iterator[Played]:
    """Play seed after seed; no more are given out at a time than keep the processes busy."""
    waiting: dict[Future[Played], tuple[int, int, int]] = {}
    with ProcessPoolExecutor(options.jobs, multiprocessing.get_context("spawn"), _obey_parent) as pool:
        for work in _work(options, end):
            if len(waiting) == 4 * options.jobs:
                yield from _ended(waiting)
            if stop.is_set():
                break
            waiting[_given(pool, work)] = work
        while waiting:
            if stop.is_set():
                for future in [each for each in waiting if each.cancel()]:
                    del waiting[future]
            yield from _ended(waiting)


def _given(pool: ProcessPoolExecutor, work: tuple[int, int, int]) -> Future[Played]:
    """Give a seed to the pool; a process that it starts for that inherits that Ctrl-C waits."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return pool.submit(play, work)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _obey_parent() -> None:
    """Leave Ctrl-C, which a terminal sends to every process, to the one that gives out the seeds, and end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    # A process of a pool waits for its next task for ever, also where the one that was killed gave out the tasks.
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _ended(waiting: dict[Future[Played], tuple[int, int, int]]) -> Iterator[Played]:
    """Take out what has ended, at least one. A bug that raises fails its own seed, and the soak goes on."""
    for future in wait(waiting, return_when=FIRST_COMPLETED).done:
        seed, steps, _ = waiting.pop(future)
        error = future.exception()
        if error is None:
            yield future.result()
        else:
            said = "".join(traceback.format_exception(error)).rstrip()
            yield Played(seed, *_manner(seed), steps, 0, {}, f"{type(error).__name__}: {error}\n{said}")


def _work(options: argparse.Namespace, end: float | None) -> Iterator[tuple[int, int, int]]:
    """What is to be played."""
    seeds = (
        itertools.count(options.start) if options.seeds is None else range(options.start, options.start + options.seeds)
    )
    for seed in seeds:
        if end is not None and time.monotonic() >= end:
            return
        yield seed, options.steps, options.brokers


def _tell(failed: Played, options: argparse.Namespace) -> None:
    print(f"seed {failed.seed}, {failed.mood}: {failed.broken}\n    {_again(failed, options)}", flush=True)


def _again(failed: Played, options: argparse.Namespace, left_out: LeftOut = NOTHING) -> str:
    """The command that plays a history again."""
    faults, durable = MOODS[failed.mood]
    chosen = (*(("--durable",) if durable else ()), *left_out.arguments)
    return (
        f"logstore simulate --seed {failed.seed} --steps {failed.steps} --brokers {options.brokers} --faults {faults} "
        f"{' '.join(('--placement', failed.placement, *chosen))}"
    )


def _tell_shrunk(failed: Sequence[Played], options: argparse.Namespace) -> None:
    """Shrink the first history of each broken promise; a history that a bug ended without one is not shrunk."""
    first = {each.promise: each for each in sorted(failed, key=lambda each: -each.seed) if each.promise}
    for each in first.values():
        settings = _settings(each.seed, options.brokers)
        least = shortest_failure(simulate(each.seed, options.steps, settings), settings)
        if least.broken is not None:
            again = _again(replace(each, steps=least.steps), options, least.left_out)
            print(f"the least of seed {each.seed} that breaks a promise: {least.broken}\n    {again}", flush=True)


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "tools/soak", description="Plays histories of simulated clusters, seed after seed."
    )
    parser.add_argument(
        "minutes", type=float, nargs="?", metavar="MINUTES", help="how long; else --seeds says how many"
    )
    parser.add_argument("--hours", type=float, metavar="H", help="how long, with fresh seeds on all processors")
    parser.add_argument("--seeds", type=int, metavar="N", help="play so many, however long it takes")
    parser.add_argument("--start", type=int, metavar="N", help="the first seed [0; with --hours: by the time of day]")
    parser.add_argument("--steps", type=int, default=200, metavar="N", help="of each history [200]")
    parser.add_argument("--brokers", type=int, default=5, metavar="N", help="of each cluster [5]")
    parser.add_argument("--jobs", type=int, metavar="N", help="processes [2; with --hours: all processors]")
    parser.add_argument(
        "--every-path",
        action="store_true",
        help="exit with 1 when a path was not reached that 1,000 seeds should reach",
    )
    options = parser.parse_args(argv)
    given = [each for each in (options.minutes, options.hours, options.seeds) if each is not None]
    if len(given) != 1:
        parser.error("give either MINUTES, --hours or --seeds")
    (wanted,) = given
    long = options.hours is not None
    options.minutes = 60 * options.hours if long else options.minutes
    options.start = (int(time.time()) if long else 0) if options.start is None else options.start
    options.jobs = (processors() if long else 2) if options.jobs is None else options.jobs
    if options.steps < 0 or options.brokers < 1 or options.jobs < 1 or wanted <= 0:
        parser.error("numbers want to be positive")
    return options


if __name__ == "__main__":
    sys.exit(main())
