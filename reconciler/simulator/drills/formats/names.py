"""A game with names and IDs: each is built, read back and refused by rules that are written here as plain loops.

A name has its longest form at a length that no history's topic has, so lengths are drawn around it. What a name must be
is put together by counting characters; nothing of ``layout`` is asked about what ``layout`` gave. Source: FACTS §1.2 to
§1.4, §2.2, §3; KIP37-1, KIP37-5, KIP516-12.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Final

from layout import directory_name
from layout.directory_name import DirectoryKind
from layout.errors import InvalidNameError
from layout.ids import DirectoryId, TopicId
from layout.log_dir_set import LogDirSet, startup_problems
from layout.meta_properties import MetaProperties
from layout.ours import StagedRecord
from layout.scheme import Scheme, partition_path, sibling_staging_root
from layout.topic import TopicPartition, check_full_topic_name
from logstore import Settings
from reconciler.simulator.checks import BrokenInvariantError

_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
_LEGAL: Final = frozenset(f"{_LETTERS}{_LETTERS.upper()}0123456789._-")
_IN_TIERS: Final = _LEGAL - {"_"}
_DIGITS: Final = f"{_LETTERS.upper()}{_LETTERS}0123456789-_"
"""The 64 digits of an ID's text, six bits each."""

_LONGEST_TOPIC, _LONGEST_NAME, _MOST = 249, 255, (1 << 31) - 1
_LENGTHS: Final = (1, 2, 40, 205, 206, 207, 247, 248, 249, 250, 300)
_ODD: Final = ("", ".", "..", "a b", "a/b", "a\0", "ä", "orders-0", "-", "a-", "__consumer_offsets", "a.-delete")
_TIERS: Final = ("", "", "", "org:", "org:apache:", "org::", ":", "deleting:", "a_b:", "__x:")
_NUMBERS: Final = (0, 1, 7, 10, 999_999_999, 1_000_000_000, _MOST, _MOST + 1, -1)
_IDS: Final = (0, 1, 2, 99, 100, 1 << 63, 1 << 64, (1 << 128) - 1)
"""What an ID may mean: numbers around the reserved ones, which are below 100 in a low half that has a sign."""

_DEFAULT_MS: Final = {"delete.stale.topic.delay.ms": 14_400_000, "file.delete.delay.ms": 60_000}

_STAGED_IN: Final = "deleting"
"""As KIP-516 and a real broker's operator know it."""


def text_of_id(number: int) -> str:
    """The text of the ID of a number: 22 digits of six bits, the last of which has four bits of nothing."""
    shifted = number << 4
    return "".join(_DIGITS[shifted >> 6 * place & 63] for place in range(21, -1, -1))


def draw_id(random: Random) -> int:
    """Draw the number of an ID, sometimes one that means something."""
    return random.choice(_IDS) if random.random() < 0.3 else random.getrandbits(128)


def _topic(random: Random) -> str:
    if random.random() < 0.2:
        return random.choice(_TIERS) + random.choice(_ODD)
    letters = "".join(random.choices("abcxyzXYZ019._-", k=random.choice(_LENGTHS)))
    return random.choice(_TIERS) + letters


def _is_topic(name: str) -> bool:
    return name not in (".", "..") and 0 < len(name) <= _LONGEST_TOPIC and _LEGAL.issuperset(name)


def _is_full_name(topic: str) -> bool:
    *tiers, name = topic.split(":")
    legal = (0 < len(each) <= _LONGEST_TOPIC and _IN_TIERS.issuperset(each) and each != _STAGED_IN for each in tiers)
    return _is_topic(name) and all(legal)


def _outcome(act: Callable[[], object]) -> object:
    """What a call gives; None: it refuses the name."""
    try:
        return act()
    except InvalidNameError:
        return None


def _expect(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise BrokenInvariantError(f"{what} is {found!r:.400}, and should be {wanted!r:.400}")


def _full_name(random: Random) -> None:
    topic = _topic(random)
    try:
        check_full_topic_name(topic)
        is_accepted = True
    except InvalidNameError:
        is_accepted = False
    _expect(f"whether {topic!r} is a topic", is_accepted, _is_full_name(topic))


def _path(random: Random) -> None:
    """The path of a live replica in each scheme."""
    topic, number, id_number = _topic(random), random.choice(_NUMBERS[:-2]), draw_id(random)
    partition, topic_id = TopicPartition(topic, number), TopicId(id_number.to_bytes(16, "big"))
    known = random.choice((None, topic_id))
    *tiers, name = topic.split(":")
    directory = f"{name}-{number}"
    is_fit = _is_full_name(topic) and len(directory) <= _LONGEST_NAME
    digits = f"{id_number:032x}"
    wanted = {
        Scheme.FLAT: directory if is_fit and not tiers else None,
        Scheme.NAMESPACED: "/".join((*tiers, directory)) if is_fit else None,
        Scheme.BY_TOPIC_ID: None,
    }
    if known is not None and id_number and _is_full_name(topic):
        wanted[Scheme.BY_TOPIC_ID] = f"{digits[0]}{digits[1]}/{digits}_{number}"
    for scheme, path in wanted.items():
        found = _outcome(lambda scheme=scheme: partition_path(scheme, partition, known))  # type: ignore[misc]
        _expect(f"the path of {partition!s:.60} with ID {known} in the scheme {scheme}", found, path)


def _suffixed(random: Random) -> None:
    """The name of a replica that is deleted, stray or future: built, cut where Kafka cuts it, and read back."""
    name, number, unique = _topic(random).rpartition(":")[2], random.choice(_NUMBERS), f"{random.getrandbits(128):032x}"
    kind, build, is_cut = random.choice(
        (
            (DirectoryKind.DELETE, directory_name.delete_name, True),
            (DirectoryKind.STRAY, directory_name.stray_name, True),
            (DirectoryKind.FUTURE, directory_name.future_name, False),
        )
    )
    if not _is_topic(name):
        return  # a broker's own rule for such directories is another one
    tail = f"-{number}.{unique}-{kind}"
    kept = name[: _LONGEST_NAME - len(tail)] if is_cut else name
    wanted = f"{kept}{tail}" if 0 <= number <= _MOST else None
    _expect(f"the {kind} name of {name!r} and {number}", _outcome(lambda: build(name, number, unique)), wanted)
    if wanted is not None:
        read = directory_name.parse(wanted)
        said = (read.kind, read.topic, read.partition, read.unique)
        _expect(f"what {wanted!r} says", said, (kind, kept, number, unique))


def _staged(random: Random) -> None:
    """The name of a staged directory, and the folder that it stands in."""
    id_number, number, copy = draw_id(random), random.choice(_NUMBERS), random.choice((0, 1, 2, 3, 12))
    topic_id = TopicId(id_number.to_bytes(16, "big"))
    wanted = None
    if copy > 0 and 0 <= number <= _MOST:
        wanted = f"{text_of_id(id_number)}_{number}" + (f".{copy}" if copy > 1 else "")
    found = _outcome(lambda: directory_name.staged_name(topic_id, number, copy))
    _expect(f"the staged name of copy {copy} of {topic_id} and {number}", found, wanted)
    if wanted is not None:
        read = directory_name.parse_staged(wanted)
        said = (read.kind, read.topic_id, read.partition, read.unique)
        _expect(
            f"what {wanted!r} says", said, (DirectoryKind.STAGED, topic_id, number, f"{copy}" if copy > 1 else None)
        )
    root = random.choice(("/disk1/kafka", "disk", "/d/k/", "/", "..", "/a/."))
    name = root.strip("/").split("/")[-1]
    sibling = None if name in ("", ".", "..") else f"{root.rstrip('/')}.{_STAGED_IN}"
    _expect(f"the folder beside {root}", _outcome(lambda: sibling_staging_root(root)), sibling)


def _ids(random: Random) -> None:
    """An ID as text and hex, and whether a log dir may have it."""
    number = draw_id(random)
    raw, text = number.to_bytes(16, "big"), text_of_id(number)
    topic_id, directory_id = TopicId(raw), DirectoryId(raw)
    _expect(f"the text of {number}", (str(topic_id), topic_id.hex), (text, f"{number:032x}"))
    _expect(f"the ID of {text}", TopicId.parse(text), topic_id)
    _expect(f"whether {text} is the zero ID", topic_id.is_zero, number == 0)
    _expect(f"whether {text} is reserved", directory_id.is_reserved, _is_reserved(number))


def _is_reserved(number: int) -> bool:
    high, low = divmod(number, 1 << 64)
    return high == 0 and (low < 100 or low >= 1 << 63)


def _identities(random: Random) -> None:
    """What a broker has against the identities of its log dirs: each disagreement once, with the path."""
    numbers = [draw_id(random) for _ in range(3)]
    drawn = [
        (random.choice(("a", "a", "a", "b")), random.choice((1, 1, 1, 2)), random.choice(numbers)) for _ in range(4)
    ]
    paths = [f"/disk{place}" for place in range(random.randint(1, 4))]
    log_dirs = {
        path: MetaProperties(1, cluster, node, DirectoryId(number.to_bytes(16, "big")))
        for path, (cluster, node, number) in zip(paths, drawn, strict=False)
    }
    wanted = Counter[str]()
    for place, path in enumerate(paths):
        cluster, node, number = drawn[place]
        wrong = (cluster != drawn[0][0], node != drawn[0][1], _is_reserved(number))
        wanted[path] = sum(wrong) + any(number == other for _, _, other in drawn[:place])
    said = Counter(each.partition("/meta.properties:")[0] for each in startup_problems(LogDirSet(log_dirs)))
    _expect(f"what is wrong with {drawn[: len(paths)]}", said, +wanted)


def _due(random: Random) -> None:
    """A staged replica is due from its time on."""
    now_ms, late_ms = random.randrange(60_000, 1 << 41), random.choice((-1, 0, 1, 60_000, -60_000))
    record = StagedRecord("a", 0, TopicId.ZERO, "a-0", "STALE_ID", "a drill", 0, now_ms - late_ms)
    _expect(f"whether {record} is due at {now_ms}", record.is_due(now_ms), now_ms - late_ms <= now_ms)


def _delay(random: Random) -> None:
    """The delay of a topic: its own, that of the nearest tier that has one, that of all, or the default."""
    tiers = random.sample(("org", "apache", "a-b"), random.randrange(4))
    topic = ":".join((*tiers, "orders"))
    nearest = [topic, *("".join(f"{each}:" for each in tiers[:length]) for length in range(len(tiers), -1, -1))]
    given = dict[str, dict[str, int]]()
    for scope in (*nearest, "orders", "apache:", "org", "or:"):
        if random.random() < 0.3:
            given[scope] = {random.choice(sorted(_DEFAULT_MS)): random.randrange(1 << 30)}
    for setting, default in _DEFAULT_MS.items():
        wanted = next((given[scope][setting] for scope in nearest if setting in given.get(scope, {})), default)
        _expect(f"{setting} of {topic} by {given}", Settings(given).of(topic, setting), wanted)


NAMES: Final[tuple[tuple[str, Callable[[Random], None]], ...]] = (
    ("topic", _full_name),
    ("path", _path),
    ("suffix", _suffixed),
    ("staged", _staged),
    ("id", _ids),
    ("identities", _identities),
    ("due", _due),
    ("delay", _delay),
)
