"""What is on the disks of a Kafka-style broker, and what it means: names, IDs, and file formats. Pure: no I/O.

A broker keeps its data in **log dirs**, one for each disk. In the drawings, the right column names the module, or the
section of FACTS, that has the details. A real broker's log dir::

    /disk1/kafka/                                  log dir; all of a broker's must agree             log_dir_set
    ├── meta.properties                            whose disk this is: cluster, node, directory ID   meta_properties
    ├── bootstrap.checkpoint                       first records of a new metadata log               FACTS §2.9
    ├── .lock                                      held by the running process; 0 bytes              FACTS §2.7
    ├── .kafka_cleanshutdown                       the last stop was a clean one                     clean_shutdown
    ├── recovery-point-offset-checkpoint           topic, partition -> first unflushed offset        checkpoint
    ├── log-start-offset-checkpoint                             ... -> log start offset              checkpoint
    ├── replication-offset-checkpoint                           ... -> high watermark                checkpoint
    ├── cleaner-offset-checkpoint                               ... -> first uncompacted offset      checkpoint
    ├── _rlmm_committed_offsets                    tiered storage, 3.4 and 3.5 only                  FACTS §2.11
    ├── <any of these>.tmp                         a write that a crash cut short; never read
    ├── <any of these>.logstore.tmp                the same of this program; the next open removes it
    │
    ├── orders-0/                                  partition dir: a live replica                     directory_name
    │   ├── partition.metadata                     the topic's ID                                    partition_metadata
    │   ├── leader-epoch-checkpoint                leader epoch -> first offset of it                checkpoint
    │   ├── 00000000000000000042.log               segment, from offset 42 on                        segment_name
    │   ├── 00000000000000000042.index             ... and its indexes: .timeindex, .txnindex        segment_files
    │   ├── 00000000000000000042.snapshot          producer state before offset 42                   segment_files
    │   ├── <20 digits>.log.deleted                leftovers: .deleted, .cleaned, .swap              segment_name
    │   └── remote_log_snapshot                    tiered storage, 3.6 and 3.7 only                  FACTS §2.11
    ├── orders-1.<32 hex>-future/                  being moved from another log dir                  directory_name
    ├── orders-2.<32 hex>-delete/                  waits a minute for its deletion                   directory_name
    ├── orders-3.<32 hex>-stray/                   renamed by 3.6.1 or later; never deleted          directory_name
    ├── __cluster_metadata-0/                      KRaft's own log, in one log dir of the broker     directory_name
    │   ├── quorum-state                           leader, epoch, vote; segments as in any other     quorum_state
    │   └── <20 digits>-<10 digits>.checkpoint     metadata snapshot; .part, .checkpoint.deleted     segment_name
    └── remote-log-index-cache/                    tiered storage; passed over since 3.5             directory_name

A broker ignores other plain files. Any other *directory* stops it at its next start, or is taken for a replica if its
name looks like one; this is why we stage beside the log dir of a real broker::

    /disk1/kafka.deleting/                         staging root                                      scheme
    ├── .logstore_ledger                           when, why, where from, and until when             ours.ledger
    └── <topic ID>_0/                              a staged replica, whole                           directory_name

A log dir is *ours* when its ``meta.properties`` has ``logstore.scheme``. Then it holds its staging directory itself,
and its partitions lie flat, as above, or in one of two other ways::

    /disk1/logstore/                               ours                                              scheme
    ├── meta.properties                            logstore.scheme=flat|namespaced|by-topic-id       meta_properties
    ├── .logstore_unclean                 (*)      being changed, or a crash cut a change short      scheme
    ├── .logstore_intent                           what a change of many steps is about to do        ours.intent
    ├── .logstore_repair.<16 hex>.json    (*)      what a repair changed                             ours.repair_backup
    ├── .logstore_run.<ms>.<16 hex>.ndjson (*)     what a run did, when and why                      ours.run_journal
    ├── deleting/.logstore_ledger         (*)      when, why, where from, and until when             ours.ledger
    ├── deleting/<topic ID>_0[.2]/                 staged; .2 is a second copy of the same replica   directory_name
    ├── orders-0/                                  flat, or namespaced in the default namespace      directory_name
    ├── orders-1.<32 hex>-future/moving.json (*)   where a moved replica comes from and goes to      ours.move_record
    ├── org/.logstore_tier                         namespaced: marks org as a tier                   scheme
    ├── org/apache/orders-0/                       namespaced: partition 0 of org:apache:orders      topic
    └── 51/517c94f62e40467e96d3438ddad69e58_0/     by topic ID: two digits, then the ID in hex       directory_name

    (*) may also stand in a real broker's log dir; the ledger in the log dir itself, for strays

``ids`` has topic IDs and directory IDs; ``java_text``, ``java_properties`` and ``json_text`` have the syntax that the
formats share; ``ours`` also has the backup of a repair. Source: FACTS §1, §2; DESIGN §5.
"""
