"""An operator beside the controller, who works on the machines: moves, restores, purges, conversions, plans, repairs.

A move between disks is asked of a broker that is up, as Kafka's AlterReplicaLogDirs is. Everything else is done by a
tool, while the broker is down: an operator stops one for it where none is down. The power may be cut at any change.
Nobody tells the controller of any of it: what an operator should not have restored, the next FULL request stages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random

from layout.errors import LayoutError
from layout.scheme import Scheme
from logstore import LogStoreError
from logstore.namespaces import convert
from logstore.store import LogStore
from reconciler.simulator.cluster import Cluster, Member
from reconciler.simulator.runs.plans import Plans
from reconciler.simulator.runs.repairs import Repairs

_CUT_SHORT, _CHANGES = 0.35, 120
"""How likely the power is cut in the middle of the work, and within how many changes."""

_SCHEMES = (Scheme.NAMESPACED, Scheme.BY_TOPIC_ID)
"""Those that can hold every topic of a history; a flat log dir, only where there are no namespaces."""

_MOVES, _ALONE = 0.45, 0.3
"""How likely a replica is moved, and otherwise a plan or a repair made, where the history has them."""

_MOST_AT_ONCE = 3
_RUNNING_LEFT = 2
"""An operator stops no broker while only so many are up."""


class Operator:
    """Works on the machines of one cluster."""

    def __init__(self, cluster: Cluster, features: frozenset[str], left_out: frozenset[str] = frozenset()) -> None:
        """Do what is among the ``features``, but for what is ``left_out``; :mod:`reconciler.simulator.runs.swarm`."""
        self._cluster, self._left_out, self._goes_on = cluster, left_out, True
        schemes = _SCHEMES if "namespace" in features else (*_SCHEMES, Scheme.FLAT)
        tools: Mapping[str, Callable[[Member, LogStore, Random], str | None]] = {
            "move_disk": _move,
            "restore": _restore,
            "purge": _purge,
            "convert": partial(_convert, schemes),
        }
        self._tools = {name: tool for name, tool in tools.items() if name in features}
        self._plans = Plans(cluster, self._downtime)
        alone = {"plan": self._plans.make, "repair": Repairs(cluster, self._downtime).make}
        self._alone = {name: make for name, make in alone.items() if name in features}
        self._moves = "move_disk" in features

    def act(self, random: Random) -> None:
        """Do something on one machine."""
        if self._moves and random.random() < _MOVES:
            if "move_disk" not in self._left_out:
                self._move_while_running(random)
        elif self._alone and random.random() < _ALONE:
            self._work_alone(random.choice(sorted(self._alone)), self._stopped_if_any(random), random)
        elif self._tools.keys() - self._left_out:
            self._maintain(random)

    def plan(self, member: Member, random: Random) -> None:
        """Make a plan for a machine, where the history has plans."""
        if self._goes_on and "plan" in self._alone:
            self._work_alone("plan", member, random)

    def end(self) -> None:
        """Apply the plans that still wait, and stop working."""
        self._plans.end()
        self._goes_on = False

    def _work_alone(self, name: str, member: Member, random: Random) -> None:
        if name not in self._left_out:
            self._alone[name](member, random)

    def _move_while_running(self, random: Random) -> None:
        members = [each for each in self._cluster.members.values() if each.running]
        member = random.choice(members) if members else None
        replicas = [] if member is None else list(member.broker.store.replicas())
        if member is not None and replicas:
            self._may_lose_power(member, random)
            for replica in random.sample(replicas, min(len(replicas), _MOST_AT_ONCE)):
                number = random.randrange(len(member.disks.log_dirs))
                self._cluster.world.guarded(partial(member.alter_log_dir, replica.partition, number))

    def _maintain(self, random: Random) -> None:
        member = self._stopped(random)
        if member is None:
            return
        names = sorted(self._tools)
        chosen = random.choices(names, k=random.randint(1, _MOST_AT_ONCE))
        self._may_lose_power(member, random)
        used = [name for name in chosen if name not in self._left_out]
        self._cluster.world.guarded(partial(member.broker.maintain, partial(self._work, member, used, random)))
        if random.random() < 0.7:
            member.start()

    def _work(self, member: Member, chosen: Sequence[str], random: Random, store: LogStore) -> None:
        """Use tools on the open log dirs of a broker that is down."""
        for name in chosen:
            try:
                said = self._tools[name](member, store, random)
                self._cluster.world.history.reach(f"operator {name}", int(said is not None))
            except (LogStoreError, LayoutError) as error:
                said = f"cannot {name}: {error}"
                self._cluster.world.history.reach(f"error {name} {type(error).__name__}")
            if said is not None:
                self._cluster.world.history.say("operator", f"{member.name}: {said}")

    def _downtime(self, member: Member, work: Callable[[], None], cut: int | None = None) -> bool:
        """Do work on a machine whose broker is down, or is stopped for it; says whether it came to its end.

        ``cut``: the number of changes after which the power is cut; None: it is not.
        """
        if not self._goes_on or (member.running and not self._may_stop()):
            return False
        member.shut_down()
        if member.running:
            return False
        if cut is not None and self._cluster.settings.rates.power_cut:
            self._cluster.world.stop_after(member.name, cut)
        done = list[bool]()

        def whole() -> None:
            work()
            done.append(True)

        self._cluster.world.guarded(whole)
        return bool(done)

    def _may_stop(self) -> bool:
        return sum(each.running for each in self._cluster.members.values()) > _RUNNING_LEFT

    def _stopped_if_any(self, random: Random) -> Member:
        members = list(self._cluster.members.values())
        return random.choice([each for each in members if not each.running] or members)

    def _stopped(self, random: Random) -> Member | None:
        """Give a machine whose broker is down; stop one where none is."""
        members = list(self._cluster.members.values())
        stopped = [each for each in members if not each.running]
        if stopped:
            return random.choice(stopped)
        if len(members) <= _RUNNING_LEFT:
            return None
        member = random.choice(members)
        member.shut_down()
        return None if member.running else member

    def _may_lose_power(self, member: Member, random: Random) -> None:
        if self._cluster.settings.rates.power_cut and random.random() < _CUT_SHORT:
            self._cluster.world.stop_after(member.name, random.randrange(_CHANGES))


def _move(member: Member, store: LogStore, random: Random) -> str | None:
    replicas, targets = (
        list(store.replicas()),
        [each for each in store.log_dirs if each.identity.directory_id is not None],
    )
    if not replicas or not targets:
        return None
    replica, directory_id = random.choice(replicas), random.choice(targets).identity.directory_id
    assert directory_id is not None, "those without one were left out"
    moved = store.move(replica.partition, directory_id)
    return f"{moved.partition} lies in {member.disks.log_dirs.index(moved.log_dir) + 1} now"


def _restore(member: Member, store: LogStore, random: Random) -> str | None:
    """Bring back what is staged, whether anybody wants it or not; what lives under its name keeps the name.

    Nothing while a disk is away, as the command refuses: what it brings back may be live there too.
    """
    staged = store.staged()
    if not staged or store.offline:
        return None
    chosen = random.choice(staged)
    if chosen.partition is not None and store.find(chosen.partition) is not None:
        return f"{chosen.location} stays staged, for {chosen.partition} is live"
    return f"{store.restore(chosen).partition} is restored"


def _purge(member: Member, store: LogStore, random: Random) -> str | None:
    """Purge some of what is due, and then stop, as a purge that is cancelled does."""
    count = 0
    for _ in range(random.randint(1, 20)):
        gone = store.purge_step()
        if gone is None:
            break
        member.purged(gone)
        count += 1
    return f"{count} directories are purged" if count else None


def _convert(schemes: Sequence[Scheme], member: Member, store: LogStore, random: Random) -> str | None:
    scheme = random.choice(schemes)
    if all(each.scheme is scheme for each in store.log_dirs):
        return None
    convert(store, scheme)
    return f"is laid out as {scheme}"
