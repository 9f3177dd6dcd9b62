"""What a request did is told from two pictures of the store."""

from __future__ import annotations

from layout.ids import TopicId
from layout.ours import StagedRecord
from layout.topic import TopicPartition
from logstore.staging import Placement, Staged
from logstore.store import Entry
from reconciler.broker import Effect, EffectKind, StoreSnapshot, effects

ID = TopicId(b"i" * 16)
OTHER = TopicId(b"o" * 16)
AT = ("orders", 0)
LIVE = Entry("/d1", "orders-0", str(ID), "ok", 7)


def staged(topic_id: TopicId = ID, location: str = "deleting/x_0", inode: int = 7, *, stray: bool = False) -> Staged:
    record = StagedRecord("orders", 0, topic_id, "orders-0", "STALE_ID", "why", 1000, 5000)
    known = (None, "a broker left it") if stray else (record, None)
    return Staged("/d1", Placement.INSIDE, "x_0", location, *known, topic_id, TopicPartition(*AT), inode)


def picture(live: dict[tuple[str, int], Entry], *aside: Staged) -> StoreSnapshot:
    return StoreSnapshot(live, {(each.log_dir, each.location): each for each in aside})


def kinds(found: list[Effect]) -> list[str]:
    return [each.kind.value for each in found]


def test_nothing_changed_is_no_effect() -> None:
    same = picture({AT: LIVE}, staged(OTHER))
    assert effects(same, same) == []


def test_what_was_staged_has_its_reason_its_place_and_its_due_time() -> None:
    (found,) = effects(picture({AT: LIVE}), picture({}, staged()))
    assert found == Effect(EffectKind.STAGED, "orders", 0, str(ID), "/d1", "deleting/x_0", "STALE_ID", "why", 5000)
    assert found.key == AT


def test_a_replica_without_an_id_is_staged_under_none() -> None:
    bare = LIVE._replace(topic_id=None)
    assert [each.topic_id for each in effects(picture({AT: bare}), picture({}, staged(TopicId.ZERO)))] == [None]


def test_a_replica_that_makes_room_for_its_successor_is_two_effects() -> None:
    new = LIVE._replace(topic_id=str(OTHER), inode=0)
    assert kinds(effects(picture({AT: LIVE}), picture({AT: new}, staged()))) == ["staged", "created"]


def test_what_lay_staged_and_is_live_is_restored_also_when_it_was_a_stray() -> None:
    for before in (staged(), staged(stray=True)):
        assert kinds(effects(picture({}, before), picture({AT: LIVE}))) == ["restored"]
    # The same ID under another inode was made, and what lay there went elsewhere.
    assert kinds(effects(picture({}, staged(inode=8)), picture({AT: LIVE}))) == ["created"]


def test_an_id_that_was_written_is_told_with_the_id() -> None:
    (found,) = effects(picture({AT: LIVE._replace(topic_id=None)}), picture({AT: LIVE}))
    assert (found.kind, found.topic_id) == (EffectKind.TOPIC_ID_WRITTEN, str(ID))


def test_effects_come_by_kind_and_then_by_name() -> None:
    before = picture({("b", 1): LIVE._replace(topic_id=None), AT: LIVE})
    after = picture({("b", 1): LIVE, ("a", 2): LIVE, ("a", 10): LIVE}, staged())
    told = [(each.kind.value, each.key) for each in effects(before, after)]
    assert told == [("staged", AT), ("created", ("a", 2)), ("created", ("a", 10)), ("topic_id_written", ("b", 1))]
