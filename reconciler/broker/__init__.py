"""A broker's side of the control requests: what a simulator embeds. One call, ``Broker.handle(request)``.

::

    broker      Broker: what it was told, and one request after the other
    leading     LeaderAndIsr: the disks first, then each partition, then the answer
    judging     the request against what is live here, by the case table (``reconciler.verdicts.table``)
    changing    staging, bringing back, creating, writing topic IDs: the store's changes, and what they fail with
    stopping    StopReplica
    replica_store   what all of these need of a store
    rehearsal   the same handling over a store that only remembers: what a request would do (effects)

A LeaderAndIsr request is handled like this (DESIGN §4)::

                                                   FULL              INCREMENTAL    UNSPECIFIED
    STALE_ID, in the request                       stage, create     the same       103, nothing moves
    NOT_ASSIGNED, UNKNOWN_TOPIC, or STALE_ID
    and not in the request                         stage             nothing        nothing
    NO_ID                                          write the ID      the same       the same
    MISSING                                        create            create         create
    MISSING, and staged or stray under its ID      bring it back     the same       create
    DAMAGED, DUPLICATE                             56, left alone    the same       the same
    DUPLICATE, a copy under another topic ID       stage that copy   the same       56, left alone
    RENAMED                                        103, left alone   the same       the same

A replica that a FULL request does not name has no place in the answer: where it cannot be staged the log says so, and
the next FULL request tries again. While a disk is away nothing is made that the controller does not call new, because
it may lie there; what lies staged is brought back or left, and never replaced by an empty replica while a disk refuses.

Kafka's answers are those of FACTS §4.2 and §4.5, in that order. Where KIP-516 or the safety of the data asks for
something else, we differ on purpose; the numbers are rows of FACTS §10.4::

    what                                           Kafka 3.9                       here
    another topic ID, type INCREMENTAL or FULL     103 for ever, unless a FULL     staged and created anew (KIP516-5)
                                                   request of a migration (81)
    a FULL request counts                          in a migration, from a KRaft    always: it says that it is full (88)
                                                   controller
    what a FULL request does not want              renamed to -stray, kept for     staged, and purged after
                                                   ever (87, 89, 91)               delete.stale.topic.delay.ms
    FULL, a log without a topic ID                 the request fails               by its name; staged under the zero ID
    FULL, no or the zero ID in the request         counts as another ID            contradicts nothing
    FULL, this broker not among the replicas       kept                            staged, and answered with 3
    FULL, a future replica                         goes along with the live one    left alone: only what is live goes
    a staged or stray replica under the wanted ID  an empty one is made            brought back
    the data lies here under another topic name    an empty one is made            103: rename the topic first
    leader epoch equal, and there is no replica    11                              created, brought back
    a replica could not be made                    offline until a restart (86)    56; the next request tries again
    it lies on a disk that is offline, and the     made on another disk (94)       56: else there are two when the disk
    ID there is not known                                                          comes back
    partition.metadata is damaged                  log dir offline at start        56 for this partition
    an ID conflict while a log is made             103 for the whole request       103 for this partition
    StopReplica with a topic ID                    there is none                   KIP-516's form; 103 where it differs
    StopReplica, delete                            renamed to -delete              staged with file.delete.delay.ms
    a request that is malformed                    the connection is closed        InvalidRequestError with all reasons
"""

from reconciler.broker.broker import Broker
from reconciler.broker.dry_run import Effect, EffectKind, StoreSnapshot, dry_run_request, effects
from reconciler.broker.gates import HandSentRequest, shut_gates
from reconciler.broker.judgement import Judged, LiveReplicas, PartitionKey, judge

__all__ = [
    "Broker",
    "Effect",
    "EffectKind",
    "HandSentRequest",
    "Judged",
    "LiveReplicas",
    "PartitionKey",
    "StoreSnapshot",
    "dry_run_request",
    "effects",
    "judge",
    "shut_gates",
]
