"""One change of many steps: it is cut short, the machine restarts, and all disks are compared."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Set
from random import Random
from typing import Final

from layout.errors import LayoutError
from layout.ids import TopicId
from layout.scheme import INTENT_FILE, Scheme
from layout.topic import TopicPartition
from logstore import ChangeFailedError, ChangeRefusedError, LogStoreError
from logstore.namespaces import carry_out, create_namespace
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills.bench import PowerCut, must_be_away
from reconciler.simulator.drills.journals.changes import LongChange, draw, make
from reconciler.simulator.drills.journals.machine import DrilledMachine, Interrupt
from reconciler.simulator.drills.journals.states import StoreState, View, look
from reconciler.simulator.drills.journals.watched import Phase, Strike

_CHANGES_PER_DISK: Final = 18
_CHANGES_PER_STEP: Final = 3
"""About as many changes of a disk has a change of many steps."""

_FILE_CHANGES: Final = 5
_REMOVAL_CHANGES: Final = 2
"""Changes of a disk while a file that announces a change is written, and while it is removed."""

_RECOVERY_CHANGES: Final = 70
_AT_REST: Final = 0.2
"""How likely a disk is away for a while although nothing struck, and the machine restarts once more at the end."""

_BESIDE: Final = "beside"
"""A namespace that is created while another change is unfinished; a disk that is away then gets it when it can."""

_AWAY, _FIRST_AWAY, _STRANGER, _CUT_AGAIN, _GOES_ON = 0.65, 0.8, 0.4, 0.1, 0.85
"""How likely, after a change that was cut short: a disk is away at the next open; it is the one that decides; a
stranger's file appears; the power goes during recovery; a disk that is left is used meanwhile."""


class Play:
    """One change.

    Attributes:
        sides: the states that the store may have; both before and after the change, until one of them is known.
    """

    def __init__(
        self, machine: DrilledMachine, before: StoreState, random: Random, reach: Callable[[str], None]
    ) -> None:
        """Draw a change of a store in a state."""
        self._machine, self._random, self._reach = machine, random, reach
        self._change: LongChange = draw(machine, before, random)
        self._before, self.sides = before, [before, self._change.after]
        self._stranger: tuple[int, str] | None = None
        self._in_the_way = 0
        """Number of the replica whose new path a stranger has taken; 0: none."""

    def play(self) -> None:
        """Make it, and compare what is left.

        Raises:
            BrokenInvariantError: it is done in part, or something is lost that it did not concern.
        """
        machine, random = self._machine, self._random
        self._reach(f"drill_journal {self._change.name}")
        is_cut = self._made()
        if is_cut and random.random() < _GOES_ON:
            self._begin_another()
        self._restart(crash=is_cut or random.random() < 0.7)
        has_lost_first = 0 in machine.disks.offline
        machine.all_back()
        if len(self.sides) > 1 and random.random() < _STRANGER:
            self._put_stranger()
        if random.random() < (_AWAY if machine.disk.struck else _AT_REST):
            away = self._drawn_away(has_lost_first)
            machine.lose(away)
            self._open()
            self._compare(without=away)
            if random.random() < _GOES_ON:
                self._use_meanwhile(away)
            self._restart(crash=random.random() < 0.5)
            machine.all_back()
        self._open()
        self._compare()
        if random.random() < _AT_REST:
            self._restart(crash=True)
            self._open()
            self._compare()

    def _drawn_away(self, has_lost_first: bool) -> int:
        """Draw the disk that is away."""
        log_dirs = self._machine.log_dirs
        number = must_be_away(log_dirs)
        if number is not None:
            return number
        is_first = has_lost_first or self._random.random() < _FIRST_AWAY
        return 0 if is_first else self._random.randrange(len(log_dirs))

    def _made(self) -> bool:
        """Make the change; gives whether it was cut short so that nobody knows what became of it."""
        machine, store = self._machine, self._machine.store
        with store.changing:
            planned = self._change.plan()
            kind, strikes = self._drawn_strikes(len(planned.log_dirs), len(planned.intent.steps))
            machine.disk.arm(*strikes)
            try:
                carry_out(store, planned)
                self.sides, ended = [self._change.after], "done"
            except (PowerCut, Interrupt) as error:
                ended = "cut"
                if isinstance(error, Interrupt):
                    self._check_out_of_use()
            except LogStoreError as error:
                ended = "refused" if isinstance(error, ChangeFailedError | ChangeRefusedError) else "offline"
                if not machine.disk.struck or (kind == "system" and ended == "offline" and not machine.disk.is_late):
                    raise BrokenInvariantError(f"{self._change.name} ends for nothing with: {error}") from error
        if machine.disk.struck:
            self._reach(f"drill_journal_fault {kind}")
        if not machine.disk.is_striking:
            machine.disk.disarm()
        if ended == "refused":
            self.sides = [self._before]
            self._compare(without=next(iter(machine.disks.offline), None))
        return ended in ("cut", "offline")

    def _drawn_strikes(self, disks: int, steps: int) -> tuple[str, list[Strike]]:
        """Draw what strikes a change of so many steps on so many disks, and in which part of it."""
        machine, random = self._machine, self._random
        anywhere = (Phase.BEGUN, random.randrange(_CHANGES_PER_DISK * disks + _CHANGES_PER_STEP * steps))
        announced = (Phase.ANNOUNCED, random.randrange(_FILE_CHANGES * disks))
        concluded = (Phase.CONCLUDED, random.randrange(_REMOVAL_CHANGES * disks))
        refused = (*anywhere, machine.refuse)
        kinds: dict[str, tuple[int, list[Strike]]] = {
            "none": (1, []),
            "power": (1, [(*anywhere, machine.cut_power)]),
            "early_power": (3, [(*announced, machine.cut_power)]),
            "late_power": (4, [(*concluded, machine.cut_power)]),
            "system": (4, [refused]),
            "system_and_power": (1, [refused, (*concluded, machine.cut_power)]),
            "disk": (2, [(*random.choice((anywhere, announced)), machine.fail_any)]),
            "first_disk": (1, [(Phase.ANNOUNCED, random.randrange(2), machine.fail_first)]),
            "interrupt": (1, [(*anywhere, machine.interrupt)]),
        }
        kind = random.choice([each for each, (weight, _) in kinds.items() for _ in range(weight)])
        return kind, kinds[kind][1]

    def _check_out_of_use(self) -> None:
        """After an interrupt nothing may be built upon what is perhaps half done."""
        used = [each.path for each in self._machine.store.log_dirs if each.offline is None]
        if used and any(os.path.lexists(f"{path}/{INTENT_FILE}") for path in self._machine.log_dirs):
            affected = [path for path in used if self._is_concerned(self._machine.log_dirs.index(path))]
            if affected:
                raise BrokenInvariantError(f"{', '.join(affected)}: in use after {self._change.name} was interrupted")

    @property
    def _has_tiers(self) -> bool:
        return self._before.scheme is Scheme.NAMESPACED

    def _is_concerned(self, disk: int) -> bool:
        return self._before.view(disk) != self._change.after.view(disk)

    def _begin_another(self) -> None:
        """Try to create a namespace beside what is perhaps unfinished; it is created or not."""
        if self._has_tiers and not self._machine.disk.is_striking:
            try:
                create_namespace(self._machine.store, _BESIDE)
            except (LogStoreError, LayoutError):
                self._reach("drill_journal beside_refused")
                return
            self._reach("drill_journal beside_done")

    def _restart(self, *, crash: bool) -> None:
        if crash:
            self._machine.crash()
        else:
            self._machine.store.close()

    def _open(self) -> None:
        """Open the store, which recovers what was left, sometimes in two tries because the power goes."""
        machine = self._machine
        if self._random.random() < _CUT_AGAIN:
            machine.disk.arm((Phase.BEGUN, self._random.randrange(_RECOVERY_CHANGES), machine.cut_power))
            try:
                machine.open()
            except PowerCut:
                self._reach("drill_journal recovery_cut")
            machine.crash()
        machine.disk.disarm()
        machine.open()
        wrong = {path: why for path, why in machine.store.offline.items() if path not in self._lost()}
        if wrong:
            raise BrokenInvariantError(f"after {self._change.name} a log dir is offline for nothing: {wrong}")

    def _lost(self) -> list[str]:
        return [self._machine.log_dirs[number] for number in self._machine.disks.offline]

    def _put_stranger(self) -> None:
        """Put a stranger's file into a tier, or a directory where a replica should go to."""
        machine, random = self._machine, self._random
        before, after = self._before, self._change.after
        places = list[tuple[int, str, int]]()
        for disk, path in enumerate(machine.log_dirs):
            found = look(path)
            places += [(disk, tier, 0) for tier in found.tiers - {_BESIDE}]
            here = {number: where for number, where, _ in found.replicas}
            for old, new in zip(before.replicas, after.replicas, strict=True):
                new_path = after.path(new)
                is_there = os.path.lexists(f"{path}/{new_path}") or not os.path.isdir(
                    os.path.dirname(f"{path}/{new_path}")
                )
                if here.get(new.number) == before.path(old) and not new.is_staged and not is_there:
                    places.append((disk, new_path, new.number))
        if places:
            disk, folder, self._in_the_way = random.choice(sorted(places))
            self._stranger = disk, folder
            machine.put_stranger(f"{machine.log_dirs[disk]}/{folder}")
            self._reach(f"drill_journal stranger_{'in_the_way' if self._in_the_way else 'in_a_tier'}")

    def _use_meanwhile(self, away: int) -> None:
        """Use the disks that are there, where the change is known to be done: a topic of the old name is made anew."""
        (state, *others), machine = self.sides, self._machine
        freed = sorted({each.at.topic for each in self._before.live} - {each.at.topic for each in state.live})
        usable = [
            topic for topic in freed if topic.rpartition(":")[0] in {"", *state.namespaces} or not self._has_tiers
        ]
        if others or not usable or self._stranger:
            return
        disk = self._random.choice([each for each in range(len(machine.log_dirs)) if each != away])
        at = TopicPartition(usable[0], disk)
        self._reach("drill_journal used_meanwhile")
        self.sides = [make(machine, state, at, disk, TopicId(self._random.randbytes(16)))]

    def _compare(self, without: int | None = None) -> None:
        """Compare each disk that is there, and know from then on which side it is on.

        Where the log dir that decides is away, and no other has begun the change, it may still come to it.
        """
        machine = self._machine
        numbers = [disk for disk in range(len(machine.log_dirs)) if disk != without]
        there = {disk: look(machine.log_dirs[disk]) for disk in numbers}
        there = {disk: found._replace(tiers=found.tiers - {_BESIDE}) for disk, found in there.items()}
        fitting = [side for side in self.sides if all(self._fits(disk, found, side) for disk, found in there.items())]
        if not fitting:
            raise BrokenInvariantError(
                f"after {self._change.name} the disks hold {there}, and should hold "
                f"{' or '.join(str([side.view(disk) for disk in there]) for side in self.sides)}"
            )
        if without is None or (fitting[0] is not self.sides[0] and without is not None):
            self.sides = fitting
        if machine.disk.too_early:
            raise BrokenInvariantError(f"{self._change.name}: {machine.disk.too_early}")

    def _fits(self, disk: int, found: View, side: StoreState) -> bool:
        """Whether a disk holds what it should, or as much of it as a stranger's file lets it."""
        wanted = side.view(disk)
        if self._stranger is None:
            return found == wanted
        if disk == self._stranger[0] and len(found.strangers) != 1:
            return False
        # What cannot be renamed keeps the tiers that it lies in, and so does the stranger's file.
        stays = [self._before.path(each) for each in self._before.replicas if each.number == self._in_the_way]
        folders = [os.path.dirname(path) for path in stays] or [*found.strangers, self._stranger[1]]
        kept = {path for folder in folders for path in (folder, os.path.dirname(folder)) if self._has_tiers and path}
        if self._has_tiers and not stays and not set(found.strangers) <= found.tiers:
            return False
        at = {str(each.at) for each in (*self._before.replicas, *side.replicas) if each.number == self._in_the_way}
        return (
            found.scheme == wanted.scheme
            and wanted.tiers <= found.tiers <= wanted.tiers | kept
            and _others(found.replicas, {self._in_the_way}) == _others(wanted.replicas, {self._in_the_way})
            and _others(found.offsets, at) == _others(wanted.offsets, at)
            and sorted(each[0] for each in found.replicas) == sorted(each[0] for each in wanted.replicas)
        )


def _others(rows: Iterable[tuple[object, ...]], but: Set[object]) -> list[tuple[object, ...]]:
    return [each for each in rows if each[0] not in but]
