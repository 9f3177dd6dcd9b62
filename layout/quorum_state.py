"""``quorum-state``: the election state of a KRaft node, in ``__cluster_metadata-0``.

    {"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,"currentVoters":[],"data_version":0}
    {"leaderId":-1,"leaderEpoch":2,"votedId":1,"votedDirectoryId":"J8aAPcfLQt2bqs1JT_rMgQ","data_version":1}

One line of JSON without a line end. Layout 0 goes with kraft.version 0, and releases up to 3.7 know no other; layout 1
goes with kraft.version 1. Layout 0 does not hold the voted directory ID, layout 1 does not hold the voters. A node that
cannot read the file does not start. Source: FACTS §2.8.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final, Literal

from layout import json_text
from layout.errors import BrokerEffect
from layout.ids import DirectoryId

FILE_NAME: Final = "quorum-state"
NO_DIRECTORY_ID: Final = DirectoryId(bytes(16))
"""The directory ID where there is no vote, or where it is not known."""

_NOBODY = -1


@dataclass(frozen=True, slots=True)
class QuorumState:
    """The leader, and this node's vote.

    Attributes:
        leader_epoch: int32.
        leader_id: node id, or None while no leader is known.
        voted_id: node id of the candidate that has this node's vote in the epoch; None without a vote.
        voted_directory_id: of the same candidate; always the zero ID in layout 0.
        voters: node ids of the voters; always empty in layout 1.
    """

    leader_epoch: int
    leader_id: int | None = None
    voted_id: int | None = None
    voted_directory_id: DirectoryId = NO_DIRECTORY_ID
    voters: tuple[int, ...] = ()


def parse(data: bytes) -> QuorumState:
    """Read the first line; ``data_version`` says the layout, and further fields are ignored.

    Raises:
        DamagedFileError: no JSON object, ``data_version`` missing or unknown, or a mandatory field of the layout
            missing or of another type; all reasons at once.
    """
    # bytes.splitlines() ends a line exactly where Java does: at LF, CR and CRLF.
    first_line = next(iter(data.splitlines()), b"")
    fields = json_text.parse_object(first_line, FILE_NAME, BrokerEffect.STARTUP_ABORTS)
    reader = json_text.FieldReader(fields)
    layout = reader.integer("data_version", bits=16)
    if layout not in (0, 1):
        reader.note(f"data_version is {layout}, expected 0 or 1")
    reader.check(FILE_NAME, BrokerEffect.STARTUP_ABORTS)
    leader_id, leader_epoch, voted_id = (reader.integer(key) for key in ("leaderId", "leaderEpoch", "votedId"))
    directory_id, voters = NO_DIRECTORY_ID, []
    if layout == 1:
        directory_id = reader.id("votedDirectoryId", DirectoryId)
    else:
        reader.text("clusterId", may_be_empty=True)
        reader.integer("appliedOffset", bits=64)
        voters = _voters(fields, reader)
    reader.check(FILE_NAME, BrokerEffect.STARTUP_ABORTS)
    return QuorumState(leader_epoch, _known(leader_id), _known(voted_id), directory_id, tuple(voters))


def encode(state: QuorumState, layout: Literal[0, 1]) -> bytes:
    """Write the file in one of the two layouts, without the fields that the layout does not hold."""
    leader_id = _NOBODY if state.leader_id is None else state.leader_id
    voted_id = _NOBODY if state.voted_id is None else state.voted_id
    election = {"leaderId": leader_id, "leaderEpoch": state.leader_epoch, "votedId": voted_id}
    fields: dict[str, object]
    if layout == 0:
        voters = [{"voterId": voter} for voter in state.voters]
        fields = {"clusterId": "", **election, "appliedOffset": 0, "currentVoters": voters}
    else:
        fields = {**election, "votedDirectoryId": str(state.voted_directory_id)}
    return json.dumps({**fields, "data_version": layout}, separators=(",", ":")).encode("ascii")


def _known(node_id: int) -> int | None:
    return None if node_id == _NOBODY else node_id


def _voters(fields: dict[str, object], reader: json_text.FieldReader) -> list[int]:
    """Read the node ids of ``currentVoters``, which may be null."""
    listed = fields.get("currentVoters", ())
    if listed is None:
        return []
    ids = [voter.get("voterId") for voter in listed if isinstance(voter, dict)] if isinstance(listed, list) else []
    voters = [voter for voter in ids if json_text.is_int(voter, 32)]
    if not isinstance(listed, list) or len(voters) != len(listed):
        reader.note('currentVoters: expected a list of objects like {"voterId": 1}')
    return voters
