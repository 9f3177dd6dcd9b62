"""Which thing is in which state, and which transitions are legal: for partitions and replicas alike (CREATE-3)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, ClassVar, Generic, TypeVar

from reconciler.simulator.controller.errors import IllegalTransitionError

K = TypeVar("K", bound=Any)
S = TypeVar("S", bound=Enum)


class StateTable(Generic[K, S]):
    """The states of things of one kind; one that was never heard of does not exist."""

    kind: ClassVar[str]
    """What such a thing is called in messages."""

    def __init__(self, valid_previous: Mapping[S, frozenset[S]], non_existent: S) -> None:
        """Begin with nothing.

        Args:
            valid_previous: for each state, those from which it can be reached.
            non_existent: the state of whatever is not in the table.
        """
        self._valid_previous, self._non_existent = valid_previous, non_existent
        self._states: dict[K, S] = {}

    def of(self, key: K) -> S:
        """The state that it is in."""
        return self._states.get(key, self._non_existent)

    def check(self, key: K, state: S) -> None:
        """Refuse a transition that is none.

        Raises:
            IllegalTransitionError: the state cannot be reached from the one it is in; the message names both.
        """
        found = self.of(key)
        if found not in self._valid_previous[state]:
            expected = ", ".join(sorted(each.value for each in self._valid_previous[state]))
            raise IllegalTransitionError(
                f"{self.kind} {key} is in state {found.value} and cannot go to {state.value}; "
                f"bring it into one of these first: {expected}"
            )

    def move(self, key: K, state: S) -> None:
        """Put it into another state; one that does not exist any more is forgotten.

        Raises:
            IllegalTransitionError: as :meth:`check`.
        """
        self.check(key, state)
        if state is self._non_existent:
            del self._states[key]
        else:
            self._states[key] = state

    def begin(self, key: K, state: S) -> None:
        """Take over what is known at the beginning; no transition is asked for then."""
        self._states[key] = state

    def found_in(self, *states: S) -> list[K]:
        """Those that are in one of some states, sorted."""
        return sorted(key for key, state in self._states.items() if state in states)
