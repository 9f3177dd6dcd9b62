from __future__ import annotations

import pytest

from logstore import (
    DEFAULTS,
    DELETE_DELAY,
    STALE_DELAY,
    ChangeRefusedError,
    InvalidSettingError,
    Settings,
    parse_duration,
)

HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("4h", 4 * HOUR_MS),
        ("7d", 7 * 24 * HOUR_MS),
        ("30s", 30_000),
        ("500ms", 500),
        ("2w", 14 * 24 * HOUR_MS),
        ("90 m", 90 * 60_000),
        ("  15m ", 15 * 60_000),
        ("14400000", 4 * HOUR_MS),
        ("0", 0),
        ("0h", 0),
        ("00004h", 4 * HOUR_MS),
    ],
)
def test_a_duration_is_a_number_with_a_unit_or_in_ms(text: str, milliseconds: int) -> None:
    assert parse_duration(text) == milliseconds


@pytest.mark.parametrize(
    "text",
    ["", "h", "-1", "-4h", "+4h", "1.5h", "4H", "4h30m", "4 hours", "1e3", "0x10", "٤h", "4\u2009h", "1_000", "4h\n4h"],
)
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidSettingError, match="for example 4h"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["36601d", "999999999999999w", "9" * 16, "9" * 5000])
def test_more_than_a_hundred_years_is_a_slip_of_the_pen(text: str) -> None:
    with pytest.raises(InvalidSettingError) as refused:
        parse_duration(text)
    assert len(str(refused.value)) < 200
    assert parse_duration("36600d") + 10**13 < 1 << 63


def test_a_refusal_is_one_of_the_engines_own_errors() -> None:
    assert issubclass(InvalidSettingError, ChangeRefusedError)


def test_the_hours_win_over_the_number_that_the_proposal_writes() -> None:
    # KIP516-6, KIP516-7
    assert DEFAULTS == {STALE_DELAY: 14_400_000, DELETE_DELAY: 60_000}
    assert Settings().of("orders", STALE_DELAY) == 14_400_000


def test_the_nearest_scope_wins_topic_then_each_tier_then_the_default() -> None:
    # KIP37-5
    settings = Settings(
        {
            "": {STALE_DELAY: 1},
            "org:": {STALE_DELAY: 2},
            "org:apache:": {STALE_DELAY: 3},
            "org:apache:orders": {STALE_DELAY: 4},
        }
    )
    assert settings.of("org:apache:orders", STALE_DELAY) == 4
    assert settings.of("org:apache:payments", STALE_DELAY) == 3
    assert settings.of("org:apache:deep:payments", STALE_DELAY) == 3
    assert settings.of("org:payments", STALE_DELAY) == 2
    assert settings.of("payments", STALE_DELAY) == 1
    assert settings.of("org:apache:orders", DELETE_DELAY) == 60_000


def test_a_topic_and_a_namespace_of_one_name_are_two_scopes() -> None:
    settings = Settings({"org": {STALE_DELAY: 1}, "org:": {STALE_DELAY: 2}})
    assert settings.of("org", STALE_DELAY) == 1
    assert settings.of("org:orders", STALE_DELAY) == 2
    assert settings.of("organ", STALE_DELAY) == DEFAULTS[STALE_DELAY]


def test_what_is_given_in_a_namespace_follows_it_to_its_new_name() -> None:
    values = {
        name: {STALE_DELAY: number} for number, name in enumerate(("", "org", "org:", "org:a:", "org:t", "organ:"))
    }
    moved = Settings(values).moved("org", "com:shop").by_scope
    assert {name: each[STALE_DELAY] for name, each in moved.items()} == {
        "": 0,
        "org": 1,
        "com:shop:": 2,
        "com:shop:a:": 3,
        "com:shop:t": 4,
        "organ:": 5,
    }


def test_a_delay_of_nothing_is_a_delay() -> None:
    assert Settings({"orders": {STALE_DELAY: 0}}).of("orders", STALE_DELAY) == 0


@pytest.mark.parametrize("values", [{"retention.ms": 1}, {STALE_DELAY: -1}, {DELETE_DELAY: 10**18}])
def test_a_setting_that_there_is_not_or_a_value_that_it_cannot_have_is_refused(values: dict[str, int]) -> None:
    with pytest.raises(InvalidSettingError, match=r"delete\.stale\.topic\.delay\.ms"):
        Settings({"orders": values})
