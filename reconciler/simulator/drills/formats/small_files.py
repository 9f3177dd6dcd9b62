"""A game with the small files of a log dir: each is written here by plain text, read by ``layout``, and damaged.

A history's files are whole, or damaged where a fault strikes, which is seldom inside a number or a count. Here they are
cut at any byte, miscounted and misspelt. What a reader must say of that is counted here line by line. Source: FACTS
§2.1 to §2.5; KIP516-2.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any, Final

from layout import checkpoint, meta_properties, partition_metadata
from layout.errors import BrokerEffect, DamagedFileError, InvalidIdError
from layout.ids import TopicId
from layout.meta_properties import MetaProperties
from layout.scheme import Scheme
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills.formats.names import draw_id, text_of_id

_OFFLINE, _ABORTS, _NONE = BrokerEffect.LOG_DIR_OFFLINE, BrokerEffect.STARTUP_ABORTS, BrokerEffect.NONE
_TOPICS: Final = ("orders", "clicks", "org:payments", "a.b-c_d", "ä")
_NODE_KEYS: Final = ("broker.id", "node.id")
_SEPARATORS: Final = ("=", " = ", ": ", "\t")
_WHITE: Final = ("\n", "\r\n", "\r")


def _read(act: Callable[[], Any]) -> Any:
    """What a reader gives; where it finds damage, what a broker does about that."""
    try:
        return act()
    except DamagedFileError as error:
        return error.effect


def _expect(what: str, data: object, found: object, wanted: object) -> None:
    if found != wanted:
        raise BrokenInvariantError(f"{what} {data!r:.500} is read as {found!r:.300}, and should be {wanted!r:.300}")


def _offsets(random: Random) -> None:
    """An offset checkpoint: whole, cut, with another count or version, with a bad number, or spelt otherwise."""
    file = random.choice(checkpoint.OFFSET_CHECKPOINTS)
    rows = [
        (random.choice(_TOPICS), random.choice((0, 7, 1 << 30)), random.getrandbits(random.choice((3, 40, 63))))
        for _ in range(random.choice((0, 1, 2, 3, 9)))
    ]
    entries = {(topic, number): offset for topic, number, offset in rows}
    lines = [f"{topic} {number} {offset}" for topic, number, offset in rows]
    text, wanted = _damaged(random, lines, 3, entries, _NONE)
    data = text.encode()
    _expect(file, data, _read(lambda: checkpoint.parse_offsets(data, file)), wanted)
    _salvaged(data, text, rows)
    written = "".join(f"{each}\n" for each in ("0", len(entries), *(f"{t} {n} {o}" for (t, n), o in entries.items())))
    _expect("a checkpoint of", entries, checkpoint.encode_offsets(entries), written.encode())


def _salvaged(data: bytes, text: str, rows: list[tuple[str, int, int]]) -> None:
    """What is saved of a checkpoint are the lines that are whole, each with its end."""
    whole = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")[:-1]
    entries = {f"{topic} {number} {offset}": ((topic, number), offset) for topic, number, offset in rows}
    wanted = dict(entries[line] for line in whole if line in entries)
    _expect("what is saved of", data, checkpoint.salvage(data).entries, wanted)


def _epochs(random: Random) -> None:
    """A leader epoch checkpoint, damaged in the same ways; a bad number in it ends a broker's start."""
    rows = [(place, random.getrandbits(random.choice((3, 40, 63)))) for place in range(random.choice((0, 1, 2, 5)))]
    text, wanted = _damaged(random, [f"{epoch} {offset}" for epoch, offset in rows], 2, rows, _ABORTS)
    data = text.encode()
    _expect("leader-epoch-checkpoint", data, _read(lambda: checkpoint.parse_leader_epochs(data)), wanted)
    written = "".join(f"{each}\n" for each in ("0", len(rows), *(f"{epoch} {offset}" for epoch, offset in rows)))
    _expect("a leader epoch checkpoint of", rows, checkpoint.encode_leader_epochs(rows), written.encode())


def _damaged(random: Random, lines: list[str], fields: int, entries: Any, bad_number: BrokerEffect) -> tuple[str, Any]:
    """Damage a checkpoint of these lines; gives its text, and what is to be read."""
    head, empty = ["0", str(len(lines))], type(entries)()
    text = "".join(f"{each}\n" for each in (*head, *lines))
    match random.randrange(7):
        case 0:
            other = random.choice([each for each in (len(lines) + 1, len(lines) - 1, 99) if each >= 0])
            return "".join(f"{each}\n" for each in ("0", other, *lines)), _OFFLINE
        case 1:
            return f"{random.choice(('1', '-1', 'x', ''))}{text[1:]}", _OFFLINE
        case 2 if lines:
            hurt = f"{lines[0].rpartition(' ')[0]} {random.choice(('x', str(1 << 63), '1_0', '0x1'))}"
            return "".join(f"{each}\n" for each in (*head, hurt, *lines[1:])), bad_number
        case 3 if lines:
            hurt = random.choice((lines[0].rpartition(" ")[0], f"{lines[0]} 1", ""))
            return "".join(f"{each}\n" for each in (*head, hurt, *lines[1:])), _OFFLINE
        case 4:
            return "".join(f"{each}{random.choice(_WHITE[:2])}" for each in (*head, *lines)), entries
        case 5 | 6:
            return _cut(text[: random.randrange(len(text) + 1)], len(lines), fields, empty)
        case _:
            return text, entries


def _cut(text: str, count: int, fields: int, empty: Any) -> tuple[str, Any]:
    """What is to be read of a checkpoint that ends too early: the last number may lack digits, and nobody can tell."""
    rows = [each.split(" ") for each in text.split("\n") if each]
    if len(rows) < 2:
        return text, empty
    if rows[1] != [str(count)] or len(rows) != count + 2 or not all(len(row) == fields and row[-1] for row in rows[2:]):
        return text, _OFFLINE
    if fields == 2:
        return text, [(int(epoch), int(offset)) for epoch, offset in rows[2:]]
    return text, {(topic, int(number)): int(offset) for topic, number, offset in rows[2:]}


def _metadata(random: Random) -> None:
    """A ``partition.metadata`` in each of its forms, with an ID that may be zero, and the shipped one cut."""
    number, version = draw_id(random), random.choice((0, 0, 0, 1, -1))
    topic, partition = random.choice(_TOPICS), random.randrange(9)
    topic_id, text = TopicId(number.to_bytes(16, "big")), text_of_id(number)
    shipped = f"version: {version}\ntopic_id: {text}"
    fields = {"schema_version": version, "id": text, "name": topic, "partition": partition}
    lines = [f"{key}: {value}\n" for key, value in fields.items()]
    file = random.choice(("shipped", "shipped", "JSON", "key/value", "cut"))
    is_good = number != 0 and version >= 0
    said = (version, topic_id, None, None) if file == "shipped" else (version, topic_id, topic, partition)
    wanted: Any = said if is_good else _OFFLINE
    if file == "shipped":
        data = shipped.encode()
    elif file == "JSON":
        data = json.dumps(fields).encode()
    elif file == "key/value":
        data = "".join(lines if number & 1 else [lines[1], lines[0], *lines[2:]]).encode()
        if not number & 1 and number and version >= 0:
            wanted = said  # a broker takes the ID for the version, and refuses it
    else:
        data = shipped[: random.randrange(len(shipped))].encode()
        wanted = _effect_of_cut(data.decode(), version)
    found = _read(lambda: partition_metadata.parse(data))
    values = found if isinstance(found, BrokerEffect) else (found.version, found.topic_id, found.topic, found.partition)
    _expect("partition.metadata", data, values, wanted)
    _written(topic_id, text, (topic, partition))


def _effect_of_cut(text: str, version: int) -> BrokerEffect:
    """What a broker does about the beginning of a file: it looks at the version first, then for a second line."""
    first, _, second = text.partition("\n")
    if not text:
        return _ABORTS
    if first != f"version: {version}" or version < 0:
        return _OFFLINE
    return _ABORTS if not second or len(second) > len("topic_id: ") else _OFFLINE


def _written(topic_id: TopicId, text: str, at: tuple[str, int]) -> None:
    """Both written forms; the zero ID is refused in each."""
    fields = {"schema_version": 0, "id": text, "name": at[0], "partition": at[1]}
    forms: tuple[tuple[Callable[[], bytes], str], ...] = (
        (lambda: partition_metadata.encode(topic_id), f"version: 0\ntopic_id: {text}"),
        (lambda: partition_metadata.encode_json(topic_id, *at), json.dumps(fields)),
    )
    for act, wanted in forms:
        try:
            found = act()
        except InvalidIdError:
            found = b""
        _expect("the file of topic ID", text, found, b"" if topic_id.to_bytes() == bytes(16) else wanted.encode())


def _properties(random: Random) -> None:
    """A ``meta.properties`` in any order of its keys, with what its version requires or without."""
    version, id_text = random.choice((0, 1)), text_of_id(draw_id(random))
    pairs = {
        "version": str(version),
        "cluster.id": random.choice(("c1", "a=b:c", "")),
        _NODE_KEYS[version]: random.choice(("1", "-7")),
        "directory.id": id_text,
        "logstore.scheme": random.choice(tuple(Scheme)).value,
        "other.key": "it's kept",
    }
    bad = {"version": "2", _NODE_KEYS[version]: "1x", "directory.id": f"{id_text}x"}
    for key in random.sample(sorted(pairs), random.choice((0, 0, 1, 2))):
        del pairs[key]
    # Without its version a file is of version 0, in which the other version's key means nothing.
    version = int(pairs.get("version", "0"))
    is_whole = version == 0 or {"cluster.id", "node.id"} <= pairs.keys()
    if random.random() < 0.3:
        key = random.choice(sorted(bad))
        pairs[key] = bad[key]
        is_whole = key == _NODE_KEYS[1 - version] and is_whole
    _compare_properties(random, pairs, version, is_whole=is_whole)


def _compare_properties(random: Random, pairs: dict[str, str], version: int, *, is_whole: bool) -> None:
    rows = random.sample(sorted(pairs.items()), len(pairs))
    spelt = "".join(f"{each}{random.choice(_SEPARATORS)}{_escaped(value)}\n" for each, value in rows)
    data = f"#\n#a drill\n{spelt}".encode()
    found = _read(lambda: meta_properties.parse(data))
    if not is_whole or not isinstance(found, MetaProperties):
        _expect("meta.properties", data, found, "its values" if is_whole else _OFFLINE)
        return
    other = dict(pairs)
    names = ("version", "cluster.id", _NODE_KEYS[version], "directory.id", "logstore.scheme")
    wanted = (str(version), *[other.pop(each, None) for each in names][1:], other)
    values = (found.version, found.cluster_id, found.node_id, found.directory_id, found.scheme)
    said = (*(None if each is None else str(each) for each in values), dict(found.other))
    _expect("meta.properties", data, said, wanted)
    lines = meta_properties.encode(found, "#a drill").decode().splitlines()
    again = [each for each in lines if not each.startswith("#")]
    kept = sorted({**pairs, "version": str(version)}.items())
    _expect("what is written of", data, again, [f"{each}={_escaped(value)}" for each, value in kept])


def _escaped(value: str) -> str:
    return value.replace(":", "\\:").replace("=", "\\=")


FILES: Final[tuple[tuple[str, Callable[[Random], None]], ...]] = (
    ("offsets", _offsets),
    ("offsets", _offsets),
    ("epochs", _epochs),
    ("metadata", _metadata),
    ("metadata", _metadata),
    ("properties", _properties),
)
