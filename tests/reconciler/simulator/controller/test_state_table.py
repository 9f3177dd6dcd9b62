"""A table of states, with three of its own."""

from __future__ import annotations

from enum import Enum

import pytest

from reconciler.simulator.controller.settings import IllegalTransitionError
from reconciler.simulator.controller.states import StateTable


class Light(Enum):
    OFF = "Off"
    RED = "Red"
    GREEN = "Green"


class Lights(StateTable[str, Light]):
    kind = "light"

    def __init__(self) -> None:
        off, red, green = (frozenset({each}) for each in Light)
        super().__init__({Light.RED: off | green, Light.GREEN: red, Light.OFF: red}, Light.OFF)


def test_what_was_never_heard_of_and_what_is_gone_do_not_exist() -> None:
    lights = Lights()
    assert lights.of("a") is Light.OFF
    lights.move("a", Light.RED)
    assert lights.of("a") is Light.RED
    lights.move("a", Light.OFF)
    assert (lights.of("a"), lights.found_in(*Light)) == (Light.OFF, [])


def test_an_illegal_transition_names_both_states_and_those_that_would_do_and_changes_nothing() -> None:
    # CREATE-3
    lights = Lights()
    with pytest.raises(IllegalTransitionError, match=r"light a is in state Off and cannot go to Green.*first: Red"):
        lights.move("a", Light.GREEN)
    assert lights.of("a") is Light.OFF


def test_what_is_taken_over_at_the_beginning_needs_no_transition_and_is_found_sorted() -> None:
    lights = Lights()
    for name in ("b", "c", "a"):
        lights.begin(name, Light.GREEN)
    lights.move("c", Light.RED)
    assert lights.found_in(Light.GREEN) == ["a", "b"]
    assert lights.found_in(Light.RED, Light.GREEN) == ["a", "b", "c"]
