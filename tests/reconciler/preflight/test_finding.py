"""What follows from one thing: effects in order of harm, and findings sorted by them."""

from __future__ import annotations

from reconciler.preflight import FINDING_SCHEMA, Effect
from reconciler.preflight.finding import ORDER, Finding, FindingPlace


def test_effects_are_ordered_from_the_gravest_to_a_note() -> None:
    assert sorted(Effect, key=ORDER.__getitem__) == list(Effect)
    assert (min(Effect, key=ORDER.__getitem__), max(Effect, key=ORDER.__getitem__)) == (
        Effect.STARTUP_ABORTS,
        Effect.NOTE,
    )


def test_findings_are_sorted_by_effect_then_rule_then_place() -> None:
    place = FindingPlace("/a", "x-1", "x", 1)
    note, stray = Finding(Effect.NOTE, "a", "n", place), Finding(Effect.RENAMED_TO_STRAY, "z", "s", place)
    of_broker, later = Finding(Effect.NOTE, "a", "n"), Finding(Effect.NOTE, "a", "n", FindingPlace("/a", "x-2", "x", 2))
    found = sorted([later, note, of_broker, stray], key=lambda each: each.order)
    assert found == [stray, of_broker, note, later]


def test_the_columns_have_all_that_a_finding_has() -> None:
    assert {"effect", "rule", "problem", "source", "replicas", "only_in_sync"} <= set(FINDING_SCHEMA.names)
    assert set(FindingPlace.__dataclass_fields__) <= set(FINDING_SCHEMA.names)
