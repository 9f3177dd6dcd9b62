"""Would a broker start on these log dirs, and what would it do to them? The answer before it is started.

    question.py           which broker: release and mode, and what it asks of meta.properties
    seen.py               what is looked at: the scan's rows, and what a broker reads besides
    finding.py            what follows from one thing that was found, in order of harm
    rules.py              the table of rules: where each is known from, and the next safe command
    wants.py              which replicas the metadata want here, by the comparison of reconciler.verdicts.compare
    log_dir_rules.py      meta.properties, locks, checkpoints, where the metadata log lies
    replica_rules.py      partition dirs by name, by partition.metadata, and by whether they are wanted
    file_rules.py         files in partition dirs, and the metadata log
    judgement.py          all rules together, and what follows from them for the broker as a whole

Only looks. What a broker does is ``reconciler.preflight.releases``'s to say and ``layout.log_dir_set``'s; whether the
cluster wants a replica is ``reconciler.verdicts.compare``'s. The answer holds for the moment: a broker that runs
meanwhile, or newer metadata, may change it. Source: FACTS §1.5-1.9, §2, §4.2, §6.
"""
