"""Drills changes of many steps over the log dirs of one store, each cut short in the middle, by what a machine may do.

::

    1  a change is planned and carried out, and the power, a disk or the system strikes in the middle, or a signal does
    2  the store goes on, where it may: another change is begun beside, a stranger's file appears
    3  the machine restarts, often without the disk of the log dir that decides, which is back at the next restart
    4  each disk that is there is compared: all are as before the change, or all as after it

What was seen to be done stays so, and what was refused stays undone. Source: DESIGN §5; KIP37-3, KIP516-12.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from random import Random
from typing import Final

from layout.scheme import Scheme
from logstore.fs.crash_disk import memory_folder
from reconciler.simulator.drills.journals.changes import set_up
from reconciler.simulator.drills.journals.machine import DrilledMachine
from reconciler.simulator.drills.journals.play import Play
from reconciler.simulator.drills.journals.refusals import refuse

_STEPS_PER_CHANGE: Final = 40
"""Steps of a drill for each change."""

_SCHEMES: Final = (*(Scheme.NAMESPACED,) * 4, Scheme.BY_TOPIC_ID, Scheme.FLAT)
_REFUSED: Final = 0.15
"""How likely a change is one that must be refused."""


def drill_journals(seed: int, reach: Callable[[str], None], steps: int) -> None:
    """Drill changes of many steps as a seed says; ``reach`` counts what they come to.

    Raises:
        BrokenInvariantError: a change is done in part, or something is lost that it did not concern.
    """
    random = Random(f"{seed}/drill of journals")
    for _ in range(steps // _STEPS_PER_CHANGE):
        with ExitStack() as stack:
            scheme = random.choice(_SCHEMES)
            machine = DrilledMachine(stack.enter_context(memory_folder()), random, random.choice((2, 3)), scheme)
            stack.callback(machine.end)
            state = set_up(machine, random, scheme)
            if random.random() < _REFUSED:
                reach(f"drill_journal refused_{refuse(machine, state, random)}")
            else:
                Play(machine, state, random, reach).play()
