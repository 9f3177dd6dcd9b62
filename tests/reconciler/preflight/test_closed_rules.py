"""What this user may not read says nothing about the broker, whose own user perhaps may."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.preflight import Preflight, StartEffect
from tests.reconciler.preflight.disks import (
    METADATA_LOG,
    ask,
    effects,
    identity,
    kraft_log_dir,
    log_dir,
    of_rule,
    wanted,
)

UNKNOWN = ("closed_to_this_user", StartEffect.UNKNOWN)
NOBODY = 65534


@pytest.fixture
def pair() -> Iterator[list[Path]]:
    """A KRaft broker with two log dirs, each with a replica, where another user than theirs may look."""
    if os.geteuid() != 0:
        pytest.skip("only root can become someone who may not read")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        first = kraft_log_dir(Path(folder) / "1", ["orders-0"])
        yield [first, log_dir(Path(folder) / "2", ["orders-1"], identity(number=2))]


def as_nobody(pair: list[Path], closed: str) -> Preflight:
    """The answer for a user to whom one path below the folder of both is closed."""
    (pair[0].parent / closed).chmod(0)
    os.seteuid(NOBODY)
    try:
        return ask(pair, states=wanted(0, 1, isr=[2]))
    finally:
        os.seteuid(0)


@pytest.mark.root
@pytest.mark.parametrize(
    "closed",
    [
        *("2/meta.properties", "2/orders-1", "2/orders-1/partition.metadata"),
        *("2/orders-1/00000000000000000000.log", "1/meta.properties", f"1/{METADATA_LOG}"),
        f"1/{METADATA_LOG}/00000000000000000000.log",
    ],
)
def test_what_is_closed_to_this_user_alone_takes_nothing_offline_and_stops_no_broker(
    pair: list[Path], closed: str
) -> None:
    assert effects(ask(pair, states=wanted(0, 1, isr=[2]))) == []
    answer = as_nobody(pair, closed)
    assert (effects(answer), answer.starts, answer.is_clean) == ([UNKNOWN], True, False)
    (place,) = [each.place for each in of_rule(answer, "closed_to_this_user")]
    assert f"{place.log_dir}/{place.name}" == str(pair[0].parent / closed)


@pytest.mark.root
def test_of_a_log_dir_that_is_closed_not_even_what_is_missing_is_known(pair: list[Path]) -> None:
    answer = as_nobody(pair, "2")
    assert effects(answer) == [UNKNOWN, ("missing", StartEffect.UNKNOWN)]
    assert answer.sentence.endswith("would start here; 2 things cannot be told from here")
    (missing,) = of_rule(answer, "missing")
    assert (missing.problem, missing.replicas) == (
        "1 replica wanted here on none of the log dirs that this user may read",
        1,
    )


@pytest.mark.root
@pytest.mark.parametrize("owner", [NOBODY, 4711])
def test_what_is_closed_to_the_broker_too_takes_the_log_dir_offline(pair: list[Path], owner: int) -> None:
    os.chown(pair[1], owner, owner)
    os.chown(pair[1] / "orders-1", NOBODY, NOBODY)
    assert effects(as_nobody(pair, "2/orders-1")) == [("unreadable_directory", StartEffect.LOG_DIR_OFFLINE)]


@pytest.mark.root
def test_a_closed_place_hides_no_finding_about_another(pair: list[Path]) -> None:
    shutil.copytree(pair[0] / "orders-0", pair[0] / "orders-00")
    (pair[0] / "cleaner-offset-checkpoint").write_text("broken")
    found = effects(as_nobody(pair, "2/orders-1"))
    assert set(found) == {
        UNKNOWN,
        ("duplicate", StartEffect.STARTUP_ABORTS),
        ("damaged_checkpoint", StartEffect.LOG_DIR_OFFLINE),
        ("metadata_log_dir_offline", StartEffect.STARTUP_ABORTS),
    }
