"""A broker's answer to Kafka's control requests, with the changes on its disks that they ask for.

Every request goes the same way, by hand or from a controller::

    snapshot      what lies on the disks, as values
    decision      of request, snapshot and epochs: a list of the actions that plans have, and the answers
    carry_out     does the actions in their order, or a dry run foresees them; each has one result
    memory        what is remembered, for the answer and for the next request

A LeaderAndIsr request is handled like this (DESIGN §4)::

                                                   FULL              INCREMENTAL    UNSPECIFIED
    STALE_ID, in the request                       stage, create     the same       103, nothing moves
    NOT_ASSIGNED, UNKNOWN_TOPIC, or STALE_ID
    and not in the request                         stage             nothing        nothing
    NO_ID                                          write the ID      the same       the same
    NO_ID, MISSING, but the ID is live here
    under another name                             103, left alone   the same       the same
    MISSING                                        create            create         create
    MISSING, and staged or stray under its ID      restore           restore        create
    DAMAGED, DUPLICATE                             56, left alone    the same       the same
    DUPLICATE, a copy under another topic ID       stage that copy   the same       56, left alone
    RENAMED                                        103, left alone   the same       the same

The answer has no entry for a replica that a FULL request does not name. If it cannot be staged, the log says so, and
the next FULL request tries again. While a disk is offline, only replicas that the controller calls new are created,
because any other may be on that disk. A staged replica is restored or left, and never replaced by an empty replica
while a disk refuses. It is restored under the name that the request has for its topic ID, whatever the topic was called
when it was staged: a namespace may be moved while the broker is down.

The order of the answers is Kafka's (FACTS §4.2, §4.5). Where KIP-516 or the safety of the data requires another answer,
we differ on purpose; the numbers are rows of FACTS §10.4::

    what                                           Kafka 3.9                       here
    another topic ID, type INCREMENTAL or FULL     103 for ever, unless a FULL     staged and created anew (KIP516-5)
                                                   request of a migration (81)
    a FULL request counts                          in a migration, from a KRaft    always: it says that it is full (88)
                                                   controller
    replicas that a FULL request does not want     renamed to -stray, kept for     staged, and purged after
                                                   ever (87, 89, 91)               delete.stale.topic.delay.ms
    FULL, a log without a topic ID                 the request fails               by its name; staged under the zero ID
    FULL, no or the zero ID in the request         counts as another ID            contradicts nothing
    FULL, this broker not among the replicas       kept                            staged, and answered with 3
    FULL, a future replica                         goes along with the live one    left alone: only live replicas are
                                                                               staged
    a staged or stray replica under the wanted ID  an empty one is created         restored, under the wanted name
    the data is here under another topic name      an empty one is created, or     103: rename the topic first
                                                   one without an ID gets this ID
    leader epoch equal, and there is no replica    11                              created or restored
    a replica could not be created                 offline until a restart (86)    56; the next request tries again
    the replica may be on an offline disk, whose   created on another disk (94)    56: else there are two when the disk
    topic IDs are not known                                                        comes back
    partition.metadata is damaged                  log dir offline at start        56 for this partition
    an ID conflict while a log is created          103 for the whole request       103 for this partition
    StopReplica with a topic ID                    there is none                   KIP-516's form; 103 where it differs,
                                                                                   or lies here under another name
    StopReplica, delete                            renamed to -delete              staged with file.delete.delay.ms
    a request that is malformed                    the connection is closed        InvalidRequestError with all reasons
    a request that comes late, by its number       handled; one connection has     11 for all of it, and nothing changes
                                                   one order

Where Kafka changed its own answers, ours are those of 3.9. A controller of 2.8 gets these, which its brokers gave
otherwise (FACTS §4.2, 6; §4.5; §5.1 to §5.3)::

    what                                           Kafka 2.8                       here, as in 3.9
    StopReplica at the leader epoch that the       74, and nothing is stopped;     0, and it is stopped
    partition has already                          so up to 3.4
    an equal leader epoch, with a topic ID for a   11, though the ID may be        0, and the ID is written
    replica that has none                          stored already
    an equal leader epoch, without a topic ID for  11                              0, and it goes on without one
    a follower that has one
    an equal leader epoch from a KRaft controller  the request cannot say so       0
    type                                           never read, and sent as 0       UNSPECIFIED, INCREMENTAL or FULL
    LeaderAndIsr 6 and 7, StopReplica 4            not known                       answered
"""

from reconciler.broker.broker import Broker
from reconciler.broker.decision import ActionResult
from reconciler.broker.dry_run import dry_run_request
from reconciler.broker.gates import HandSentRequest, shut_gates
from reconciler.broker.judgement import LOOKS_UNWANTED, Judged, judge
from reconciler.broker.memory import KnownEpochs, PartitionKey
from reconciler.broker.request_journal import (
    CarriedOut,
    RequestJournal,
    end_cut_short,
    last_carried_out,
    older_partitions,
    reached_epochs,
)
from reconciler.broker.snapshot import DiskSnapshot, look_at_live_replicas, newest_files

__all__ = [
    "LOOKS_UNWANTED",
    "ActionResult",
    "Broker",
    "CarriedOut",
    "DiskSnapshot",
    "HandSentRequest",
    "Judged",
    "KnownEpochs",
    "PartitionKey",
    "RequestJournal",
    "dry_run_request",
    "end_cut_short",
    "judge",
    "last_carried_out",
    "look_at_live_replicas",
    "newest_files",
    "older_partitions",
    "reached_epochs",
    "shut_gates",
]
