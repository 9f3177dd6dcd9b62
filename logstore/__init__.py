"""The engine: reads log dirs, and is the only code that changes them.

Looking, which takes no lock and changes nothing::

    scan                  one pass over a log dir: an Observation; `rows` says what its rows stand for
      directories entries replica_dir usual_replicas replica_id identity offset_checkpoints census duplicates
      pace workers unit_queue      how many look at a time, and who does what
      columns row_batches row_schema no_pandas      what was seen, before it is Arrow and after
    watch                 what changed since the last look: watch_events, watched_log_dir, known_rows
    discover inventory    log dirs below a folder; rows that another machine wrote (checksum)
    lock_holder open_files small_file log_dir_view      who holds what; reading without being caught

Changing, always under the log dir's own lock::

    durable               the primitive changes, each with its order explained; nothing else touches a disk
      directory             where each of them starts: an open directory, so that no link leads elsewhere
      open_directories replace_files
    log_dir               one disk: lock, identity, offline after an I/O error; checkpoint_files, lock
    store                 a broker's log dirs as one: create, find, fence, stage, restore, move, purge
      open_store opening replica_index creation settings clock layout_changes aside paused_gc
    staging restore       aside and back: candidate, staging_lot, staging_place, staging_root, staged, shared_records,
                          spare_records, stray_record
    purge                 for ever: purge_lots, judge_staged, remove_staged, purge_note, purge_report, purger, throttle
      purge_workers purge_wire shared_cancel ahead seen_ahead      who removes, and who looks meanwhile
    moving                between disks: copy_replica
    namespaces convert rename_topic      changes of many steps: planned_change, journal, steps, tiers
    repair                from a reviewed plan: repair_look, repair_step, repair_backups, repair_duplicates, repair_undo
    recovery              what a crash left

``LogStore`` is what a program embeds. ``errors`` has one root, and the Kafka error that each stands for
(``kafka_error``).
"""
