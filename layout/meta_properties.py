"""``meta.properties``: the identity of a log dir, by cluster, node and directory ID.

    #
    #Fri Nov 20 08:49:38 UTC 2026
    cluster.id=AtgGav8yQjiaJ3rTXE7VCA
    directory.id=s33AdXtkR8Gf_xRO-R_dpA
    node.id=1
    version=1

Version 0 (ZooKeeper) calls the node ``broker.id`` and requires nothing; version 1 (KRaft) calls it ``node.id`` and
requires it and ``cluster.id``. The key order means nothing. A log dir is *ours* when the file carries
``logstore.scheme`` (DESIGN §5); Kafka ignores keys it does not know. ``layout.log_dir_set`` checks what the files of
several log dirs must agree on. A file that does not parse takes its log dir offline. Source: FACTS §2.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from layout import java_properties
from layout.errors import BrokerEffect, DamagedFileError, InvalidIdError, NumberFormatError
from layout.ids import DirectoryId
from layout.java_text import parse_java_int
from layout.scheme import Scheme

FILE_NAME: Final = "meta.properties"
SCHEME_KEY: Final = "logstore.scheme"
NODE_KEYS: Final[Mapping[int, str]] = {0: "broker.id", 1: "node.id"}
"""The known versions, and the key that holds the node id in each."""

# Java's trim() removes all characters up to and including the space.
_TRIMMED = "".join(map(chr, range(0x21)))


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """The identity of one log dir. Every instance obeys the rules of its version.

    One that :func:`parse` read may have a scheme of another release, which a broker does not mind.

    Attributes:
        version: 0 or 1.
        cluster_id: free text, not always an ID of 22 characters, and it may be empty.
        node_id: ``broker.id`` or ``node.id``, int32; negative numbers are legal in the file.
        directory_id: absent before Kafka 3.7; reserved values parse (see ``layout.log_dir_set``).
        scheme: value of ``logstore.scheme``, one of :class:`layout.scheme.Scheme`; None in a real broker's log dir.
        other: the remaining keys, kept so that nothing is lost when the file is written again.

    Raises:
        DamagedFileError: an unknown version or scheme, a value missing that the version requires, or a value of another
            type; all reasons at once.
    """

    version: int
    cluster_id: str | None = None
    node_id: int | None = None
    directory_id: DirectoryId | None = None
    scheme: str | None = None
    other: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        _refuse([*_broken_rules(self.version, self.cluster_id, self.node_id), *_wrong_values(self)])


def parse(data: bytes) -> MetaProperties:
    """Read the file as Kafka does. A ``version`` that is missing means 0; only the version is trimmed.

    Raises:
        DamagedFileError: broken syntax, an unknown version, a number or an ID that does not parse, or a required key
            missing; all reasons at once.
    """
    other = java_properties.parse(data, FILE_NAME, BrokerEffect.LOG_DIR_OFFLINE)
    version = _parse_version(other.pop("version", "0"))
    node_key = NODE_KEYS[version]
    cluster_id, node_text, directory_text = (other.pop(key, None) for key in ("cluster.id", node_key, "directory.id"))
    reasons = _broken_rules(version, cluster_id, node_text)
    node_id = directory_id = None
    try:
        node_id = None if node_text is None else parse_java_int(node_text)
    except NumberFormatError as error:
        reasons.append(f"{node_key}: {error}")
    try:
        directory_id = None if directory_text is None else DirectoryId.parse(directory_text)
    except InvalidIdError as error:
        reasons.append(f"directory.id: {error}")
    _refuse(reasons)
    scheme = other.pop(SCHEME_KEY, None)
    identity = MetaProperties(version, cluster_id, node_id, directory_id, None, other)
    object.__setattr__(identity, "scheme", scheme)  # whoever opens the log dir refuses the scheme of another release
    return identity


def to_properties(identity: MetaProperties) -> dict[str, str]:
    """The keys and values of the file, sorted by key as newer Java releases write them."""
    known = {
        "version": str(identity.version),
        "cluster.id": identity.cluster_id,
        NODE_KEYS[identity.version]: None if identity.node_id is None else str(identity.node_id),
        "directory.id": None if identity.directory_id is None else str(identity.directory_id),
        SCHEME_KEY: identity.scheme,
    }
    present = {key: value for key, value in known.items() if value is not None}
    return dict(sorted({**identity.other, **present}.items()))


def encode(identity: MetaProperties, date: str) -> bytes:
    """Write the file.

    Args:
        identity: of the log dir.
        date: text of the second comment line, for example ``Fri Nov 20 08:49:38 UTC 2026``; no reader uses it.
    """
    return java_properties.encode(to_properties(identity), "\n" + date)


def _parse_version(text: str) -> int:
    try:
        version = parse_java_int(text.strip(_TRIMMED))
    except NumberFormatError as error:
        raise DamagedFileError(FILE_NAME, f"version: {error}", BrokerEffect.LOG_DIR_OFFLINE) from error
    if version not in NODE_KEYS:
        _refuse(_broken_rules(version, None, None))
    return version


def _broken_rules(version: int, cluster_id: object, node_id: object) -> list[str]:
    """List every rule of a version that these values break."""
    if not isinstance(version, int) or isinstance(version, bool) or version not in NODE_KEYS:
        return [f"version {version!r:.60} is not known, only 0 and 1 are"]
    required = {"cluster.id": cluster_id, NODE_KEYS[version]: node_id} if version == 1 else {}
    return [f"{key} is missing, version 1 requires it" for key, value in required.items() if value is None]


def _wrong_values(identity: MetaProperties) -> list[str]:
    """List every value that is of no use to the file, whatever the version."""
    node_id, scheme = identity.node_id, identity.scheme
    is_known = isinstance(scheme, str) and scheme in frozenset(Scheme)
    is_int32 = isinstance(node_id, int) and not isinstance(node_id, bool) and -(1 << 31) <= node_id < 1 << 31
    wrong = {
        "cluster.id is no text": identity.cluster_id if not isinstance(identity.cluster_id, str | None) else None,
        "the node ID is no int32": None if is_int32 else node_id,
        "directory.id is no DirectoryId": (
            identity.directory_id if not isinstance(identity.directory_id, DirectoryId | None) else None
        ),
        f"{SCHEME_KEY} is none of {', '.join(Scheme)}": None if is_known else scheme,
    }
    reasons = [f"{problem}: {value!r:.60}" for problem, value in wrong.items() if value is not None]
    other: object = identity.other
    if not isinstance(other, Mapping) or not all(isinstance(each, str) for pair in other.items() for each in pair):
        reasons.append(f"the other keys are no mapping of texts: {other!r:.60}")
    return reasons


def _refuse(reasons: list[str]) -> None:
    if reasons:
        raise DamagedFileError(FILE_NAME, "; ".join(reasons), BrokerEffect.LOG_DIR_OFFLINE)
