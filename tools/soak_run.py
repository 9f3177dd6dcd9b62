"""Plays histories of simulated clusters, seed after seed, on several processes; ``tools/soak`` starts it.

Each seed plays in one of the moods below, in turn; every second round of moods has KRaft's placement of replicas. If a
history breaks an invariant, the command that plays it again is printed, and the exit code is 1. What was run is counted
at the end: seeds, steps, events; and every operation, fault, verdict, answer and way of recovery that was reached. With
``--every-path`` the exit code is 1 too when one was not reached that a thousand seeds should reach.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass

from reconciler.simulator.placement import Placement
from reconciler.simulator.runs import unreached

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


def main(argv: Sequence[str] | None = None) -> int:
    """Play, tell of what fails, and count. Exit code 1 when a promise was broken."""
    options = _options(argv)
    started, played, failed = time.monotonic(), 0, 0
    counts, reached = Counter[str](), Counter[str]()
    end = None if options.minutes is None else started + 60 * options.minutes
    for each in _all_played(options, end):
        played += 1
        counts.update({"steps": each.steps, "events": each.events})
        reached.update(each.reached)
        if each.broken is not None:
            failed += 1
            _tell(each, options)
    seconds = time.monotonic() - started
    print(
        f"{played:,} seeds, {counts['steps']:,} steps, {counts['events']:,} events in {seconds:.0f} s "
        f"({counts['events'] / max(seconds, 1e-9):,.0f} events/s); {failed} broke a promise"
    )
    for line in _table(reached):
        print(line)
    missed = unreached(reached)
    if missed:
        print(f"not reached, of what {_MANY_SEEDS:,} seeds should reach: {', '.join(missed)}")
    return 1 if failed or (missed and options.every_path) else 0


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
    from reconciler.simulator.kernel import FaultRates
    from reconciler.simulator.runs import history_settings, simulate

    seed, steps, brokers = work
    mood, placement = _manner(seed)
    faults, durable = MOODS[mood]
    settings = history_settings(brokers, FaultRates.parse(faults), durable=durable, placement=placement)
    outcome = simulate(seed, steps, settings)
    return Played(seed, mood, placement, outcome.steps, outcome.events, outcome.reached, outcome.broken)


def _manner(seed: int) -> tuple[str, Placement]:
    """The mood of a seed, and how its replicas are placed."""
    return list(MOODS)[seed % len(MOODS)], list(Placement)[seed // len(MOODS) % len(Placement)]


def _all_played(options: argparse.Namespace, end: float | None) -> Iterator[Played]:
    """Play seed after seed; no more are given out at a time than keep the processes busy."""
    waiting: dict[Future[Played], tuple[int, int, int]] = {}
    with ProcessPoolExecutor(options.jobs, multiprocessing.get_context("spawn")) as pool:
        for work in _work(options, end):
            if len(waiting) == 4 * options.jobs:
                yield from _ended(waiting)
            waiting[pool.submit(play, work)] = work
        while waiting:
            yield from _ended(waiting)


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
    faults, durable = MOODS[failed.mood]
    again = (
        f"logstore simulate --seed {failed.seed} --steps {failed.steps} --brokers {options.brokers} --faults {faults} "
        f"--placement {failed.placement}{' --durable' if durable else ''}"
    )
    print(f"seed {failed.seed}, {failed.mood}: {failed.broken}\n    {again}", flush=True)


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "tools/soak", description="Plays histories of simulated clusters, seed after seed."
    )
    parser.add_argument(
        "minutes", type=float, nargs="?", metavar="MINUTES", help="how long; else --seeds says how many"
    )
    parser.add_argument("--seeds", type=int, metavar="N", help="play so many, however long it takes")
    parser.add_argument("--start", type=int, default=0, metavar="N", help="the first seed [0]")
    parser.add_argument("--steps", type=int, default=200, metavar="N", help="of each history [200]")
    parser.add_argument("--brokers", type=int, default=5, metavar="N", help="of each cluster [5]")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="processes [2]")
    parser.add_argument(
        "--every-path",
        action="store_true",
        help="exit with 1 when a path was not reached that 1,000 seeds should reach",
    )
    options = parser.parse_args(argv)
    if (options.minutes is None) == (options.seeds is None):
        parser.error("give either MINUTES or --seeds")
    wanted = options.seeds if options.minutes is None else options.minutes
    if options.steps < 0 or options.brokers < 1 or options.jobs < 1 or wanted <= 0:
        parser.error("numbers want to be positive")
    return options


if __name__ == "__main__":
    sys.exit(main())
