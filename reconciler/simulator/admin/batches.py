"""Batches: one outcome for each topic, and no topic twice in one of them (KIP4-1, KIP4-2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import TypeVar

from layout.errors import LayoutError
from logstore import KafkaError
from reconciler.simulator.admin.commands import CommandOutcome, CommandRefusedError
from reconciler.simulator.controller import AssignmentError

Key = TypeVar("Key", bound=Hashable)
Instruction = TypeVar("Instruction")


def carry_out(
    batch: Sequence[Instruction], key: Callable[[Instruction], Key], do: Callable[[Instruction], None]
) -> dict[Key, CommandOutcome]:
    """Carry out the instructions of a batch, one after the other; one that is refused stops no other.

    Args:
        batch: the instructions.
        key: what an instruction is about; more than one for the same thing, and none of these is carried out.
        do: carries out one.

    Returns:
        The outcomes in the order of the batch.
    """
    times = Counter(key(instruction) for instruction in batch)
    outcomes: dict[Key, CommandOutcome] = {}
    for instruction in batch:
        about = key(instruction)
        if times[about] > 1:
            text = f"{about} has {times[about]} instructions in one batch, and may have one; send them in turn"
            outcomes[about] = CommandOutcome(KafkaError.INVALID_REQUEST, text)
        else:
            outcomes[about] = outcome_of(partial(do, instruction))
    return outcomes


def outcome_of(do: Callable[[], None]) -> CommandOutcome:
    """Carry out one instruction; what it is refused for becomes its outcome."""
    try:
        do()
    except (CommandRefusedError, AssignmentError) as error:
        return CommandOutcome(error.error, str(error))
    except LayoutError as error:
        return CommandOutcome(KafkaError.INVALID_TOPIC_EXCEPTION, str(error))
    return CommandOutcome()
