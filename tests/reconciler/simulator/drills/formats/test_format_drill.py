"""The drill of formats: sound code reads and writes as the games do, and a mistake is noticed within a few seeds."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random
from types import SimpleNamespace
from unittest.mock import ANY

import pytest

from layout import checkpoint, directory_name, topic
from layout.ids import DirectoryId, TopicId
from layout.ours import intent
from logstore import settings
from reconciler.protocol import LeaderAndIsrRequest, TopicState, check, tables
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills import drill_formats
from reconciler.simulator.drills.formats.bytes_of import Bytes, leader_and_isr
from reconciler.simulator.drills.formats.names import text_of_id
from reconciler.simulator.drills.formats.steps import play_steps
from reconciler.simulator.drills.formats.zookeeper import play_zookeeper
from reconciler.simulator.runs.coverage import EXPECTED
from reconciler.sources.zookeeper import snapshot, transactions
from tests.reconciler.simulator.drills.counting import counted

SEEDS, STEPS = 25, 150


def test_sound_code_is_right_at_every_edge_and_a_seed_always_plays_the_same() -> None:
    found = counted(drill_formats, SEEDS, STEPS)
    assert found.keys() == {each for each in EXPECTED if each.startswith("drill_format ")}
    assert counted(drill_formats, 2, STEPS) == counted(drill_formats, 2, STEPS)


def test_the_text_of_an_id_is_that_of_a_real_one() -> None:
    assert text_of_id(0x517C94F62E40467E96D3438DDAD69E58) == "UXyU9i5ARn6W00ON2taeWA"


def test_the_bytes_of_a_request_are_those_of_a_real_one() -> None:
    request = LeaderAndIsrRequest(1, 2, (TopicState("a", None, ()),), 3)
    expected = "00000001 00000002 0000000000000003 00 02 0261 00000000000000000000000000000000 01 00 01 00"
    assert leader_and_isr(request, 5).data == bytes.fromhex(expected)


def test_a_varint_of_more_than_seven_bits_has_its_lowest_bits_first() -> None:
    out = Bytes(flexible=True)
    out.count("numbers", range(299))
    assert (out.data, out.counts[0].width) == (b"\xac\x02", 2)


def uncounted(data: bytes) -> dict[tuple[str, int], int] | None:
    match = re.fullmatch(rb"0\n[0-9]+\n((?:[!-~]+ [0-9]+ [0-9]{1,18}\n)*)", data)
    rows = [] if match is None else [row.split() for row in match[1].decode().splitlines()]
    return {(topic, int(number)): int(offset) for topic, number, offset in rows} or None


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (lambda patch: patch.setattr(topic, "MAX_NAME_LENGTH", 248), "is a topic is|path of"),
        (lambda patch: patch.setattr(directory_name, "MAX_DIRECTORY_NAME", 256), "name of"),
        (lambda patch: patch.setattr(DirectoryId, "is_reserved", property(lambda self: False)), "reserved|is wrong"),
        (
            lambda patch: patch.setattr(TopicId, "is_zero", property(lambda self: False)),
            "zero ID|a zero that|path of|file of|is read",
        ),
        (lambda patch: patch.setattr(checkpoint, "_as_written", uncounted), "checkpoint"),
        (lambda patch: patch.setattr(checkpoint, "_LINE_END", re.compile(rb"\r\n|\r|\n|$")), "what is saved"),
        (lambda patch: patch.setattr(tables, "id_of", TopicId), "cannot be read"),
        (lambda patch: patch.setattr(check, "_about_topics", lambda _: iter(())), "is accepted"),
        (lambda patch: patch.setattr(settings, "_scopes", lambda topic: [topic, ""]), "delay.ms of"),
    ],
    ids=["name", "directory", "reserved", "zero", "count", "half a line", "zero in bytes", "check", "tiers"],
)
def test_a_mistake_is_noticed(
    mistake: Callable[[pytest.MonkeyPatch], None], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mistake(monkeypatch)
    with pytest.raises(BrokenInvariantError, match=said):
        counted(drill_formats, SEEDS, STEPS)


def test_an_undo_in_the_order_of_doing_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    inverse = intent.inverse_step
    monkeypatch.setattr(
        "reconciler.simulator.drills.formats.steps.inverse_steps", lambda steps: list(map(inverse, steps))
    )
    with pytest.raises(BrokenInvariantError, match="does not undo what it should"):
        for seed in range(SEEDS):
            play_steps(Random(seed))


@pytest.mark.parametrize(
    "mistake",
    [
        lambda patch: patch.setattr(snapshot, "sorted", lambda found, reverse=False: sorted(found), raising=False),
        lambda patch: patch.setattr(transactions, "zlib", SimpleNamespace(adler32=lambda _: ANY)),
        lambda patch: patch.setattr(snapshot, "last_spoken_for", lambda *_: None),
    ],
    ids=["oldest snapshot", "checksum", "time"],
)
def test_a_mistake_with_the_files_of_zookeeper_is_noticed(
    mistake: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mistake(monkeypatch)
    with pytest.raises(BrokenInvariantError):
        for seed in range(SEEDS):
            play_zookeeper(Random(seed))
